// SPDX-License-Identifier: Apache-2.0

// The benchmarks of bobbin_bench in Go. See ../measure.h for what the program prints.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"
)

// measure tells how many nanoseconds one operation takes, of so many that they take a while
// together.
func measure(body func(operations int)) float64 {
	const longEnough = 200 * time.Millisecond
	for operations := 1; ; operations *= 2 {
		begin := time.Now()
		body(operations)
		if taken := time.Since(begin); taken >= longEnough {
			return float64(taken.Nanoseconds()) / float64(operations)
		}
	}
}

// share gives `operations` to `count` goroutines and waits for them.
func share(count, operations int, part func(mine int)) {
	var all sync.WaitGroup
	all.Add(count)
	for i := 0; i < count; i++ {
		go func() {
			part(operations/count + 1)
			all.Done()
		}()
	}
	all.Wait()
}

func yield(count int) float64 {
	return measure(func(operations int) {
		share(count, operations, func(mine int) {
			for ; mine > 0; mine-- {
				runtime.Gosched()
			}
		})
	})
}

func channelPingPong() float64 {
	return measure(func(operations int) {
		there, back := make(chan int, 1), make(chan int, 1)
		go func() {
			for i := 0; i < operations; i++ {
				back <- <-there
			}
		}()
		for i := 0; i < operations; i++ {
			there <- 1
			<-back
		}
	})
}

func spawnJoinSequential() float64 {
	return measure(func(operations int) {
		done := make(chan struct{}, 1)
		for ; operations > 0; operations-- {
			go func() { done <- struct{}{} }()
			<-done
		}
	})
}

func spawnJoinBatch() float64 {
	return measure(func(operations int) {
		for operations > 0 {
			batch := operations
			if batch > 1000 {
				batch = 1000
			}
			operations -= batch
			var all sync.WaitGroup
			all.Add(batch)
			for ; batch > 0; batch-- {
				go all.Done()
			}
			all.Wait()
		}
	})
}

func mutexUncontended() float64 {
	return measure(func(operations int) {
		var mutex sync.Mutex
		for ; operations > 0; operations-- {
			mutex.Lock()
			mutex.Unlock()
		}
	})
}

func mutexContended(section func()) float64 {
	return measure(func(operations int) {
		var mutex sync.Mutex
		share(64, operations, func(mine int) {
			for ; mine > 0; mine-- {
				mutex.Lock()
				section()
				mutex.Unlock()
			}
		})
	})
}

func sumOfLeaves(result chan<- int, first, count int) {
	if count == 1 {
		result <- first
		return
	}
	sums, total := make(chan int), 0
	for i := 0; i < 10; i++ {
		go sumOfLeaves(sums, first+i*(count/10), count/10)
	}
	for i := 0; i < 10; i++ {
		total += <-sums
	}
	result <- total
}

// skynet is a tree of 1,000,000 leaves; one operation is a leaf.
func skynet() float64 {
	const leaves = 1_000_000
	begin := time.Now()
	result := make(chan int)
	go sumOfLeaves(result, 0, leaves)
	if <-result != leaves*(leaves-1)/2 {
		panic("the leaves add up to something else")
	}
	return float64(time.Since(begin).Nanoseconds()) / leaves
}

type benchmark struct {
	processors int
	run        func() float64
}

var all = map[string]benchmark{
	"Yield/2":                    {1, func() float64 { return yield(2) }},
	"Yield/10000":                {1, func() float64 { return yield(10_000) }},
	"Channel/PingPong":           {1, channelPingPong},
	"SpawnJoin/Sequential":       {1, spawnJoinSequential},
	"SpawnJoin/Batch1000":        {1, spawnJoinBatch},
	"SpawnJoin/Batch1000/2":      {2, spawnJoinBatch},
	"Mutex/Uncontended":          {1, mutexUncontended},
	"Mutex/64Threads":            {2, func() float64 { return mutexContended(func() {}) }},
	"Mutex/64ThreadsYieldInside": {1, func() float64 { return mutexContended(runtime.Gosched) }},
	"Skynet/1000000":             {1, skynet},
	"Skynet/1000000/2":           {2, skynet},
}

func main() {
	wanted := ""
	if len(os.Args) == 2 {
		wanted = os.Args[1]
	}
	if wanted == "--list" {
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			fmt.Println(name)
		}
		return
	}
	found, ok := all[wanted]
	if !ok {
		fmt.Fprintln(os.Stderr, "name one of those that --list prints")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(found.processors)
	fmt.Printf("%.2f\n", found.run())
}
