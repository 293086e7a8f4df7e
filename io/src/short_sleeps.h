// SPDX-License-Identifier: Apache-2.0
//
// ShortSleeps: guesses whether the next sleep of a carrier will be so short that to look for its
// end costs less than to sleep.
//
// To fall asleep and be woken takes ten microseconds and more, most of it CPU time. Where question
// and answer follow one another, the next question is there earlier. A carrier that looks for it
// without sleeping wastes what it looks in vain, so it does so only after several short sleeps; one
// look in vain, and it needs twice as many the next time.
//
//   Called from   one OS thread.
//   Suspends      never.
//   Cost          a few instructions a sleep.

#ifndef BOBBIN_IO_SRC_SHORT_SLEEPS_H_
#define BOBBIN_IO_SRC_SHORT_SLEEPS_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace bobbin::io::internal {

class ShortSleeps {
 public:
  // How long a look may take, and which sleeps promise that one will not be in vain: with falling
  // asleep and waking they take some ten microseconds longer.
  static constexpr std::chrono::microseconds kLookMax{20};
  static constexpr std::chrono::microseconds kShort{40};
  // So many of these in a row before a look; at worst a look is wasted for each eight sleeps, and
  // soon for each thousand.
  static constexpr uint32_t kNeededMin = 8;
  static constexpr uint32_t kNeededMax = 1024;

  bool should_look() const { return in_a_row_ >= needed_; }

  void AfterSleep(std::chrono::nanoseconds length) {
    in_a_row_ = length <= kShort ? in_a_row_ + 1 : 0;
  }
  void AfterLook(bool has_found) {
    if (has_found) {
      needed_ = kNeededMin;
      in_a_row_ = kNeededMin;
    } else {
      needed_ = std::min(needed_ * 2, kNeededMax);
      in_a_row_ = 0;
    }
  }

 private:
  uint32_t in_a_row_ = 0;
  uint32_t needed_ = kNeededMin;
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_SHORT_SLEEPS_H_
