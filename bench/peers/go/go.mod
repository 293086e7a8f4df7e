module bobbin/bench/peers

go 1.19
