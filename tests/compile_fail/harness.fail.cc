// EXPECT: static.assert.*two is not three

#ifdef BOBBIN_COMPILE_FAIL
static_assert(2 == 3, "two is not three");
#endif
