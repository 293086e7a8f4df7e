module bobbin/bench/http

go 1.19
