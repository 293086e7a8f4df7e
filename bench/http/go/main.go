// SPDX-License-Identifier: Apache-2.0

// The HTTP server of bobbin_http_server, with net/http.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	text := []byte("Hello, World!")
	http.HandleFunc("/", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/plain")
		out.Write(text)
	})
	fmt.Println("listening", listener.Addr())
	http.Serve(listener, nil)
}
