// SPDX-License-Identifier: Apache-2.0

// Goroutines that ask PostgreSQL through pgx, as the virtual threads of postgres_bench.cc do. See
// ../measure.h for what the program prints; the server is the one that the environment's
// BOBBIN_BENCH_POSTGRES names.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v4/pgxpool"
)

const (
	connections = 8
	goroutines  = 64
)

type question func(ctx context.Context, pool *pgxpool.Pool) error

func oneRow(ctx context.Context, pool *pgxpool.Pool) error {
	var number int32
	return pool.QueryRow(ctx, "select 1").Scan(&number)
}

func tenRows(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx,
		"select i, i * 2.5::float8, 'row number ' || i from generate_series(1, 10) i")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var number int32
		var product float64
		var text string
		if err := rows.Scan(&number, &product, &text); err != nil {
			return err
		}
	}
	return rows.Err()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "pgx:", err)
	os.Exit(1)
}

// measure tells how many nanoseconds one statement takes, of so many that they take a while
// together.
func measure(ask question) float64 {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(os.Getenv("BOBBIN_BENCH_POSTGRES"))
	if err != nil {
		fail(err)
	}
	config.MaxConns = connections
	pool, err := pgxpool.ConnectConfig(ctx, config)
	if err != nil {
		fail(err)
	}
	defer pool.Close()
	const longEnough = time.Second
	for each := 16; ; each *= 2 {
		begin := time.Now()
		var all sync.WaitGroup
		all.Add(goroutines)
		for i := 0; i < goroutines; i++ {
			go func() {
				defer all.Done()
				for n := 0; n < each; n++ {
					if err := ask(ctx, pool); err != nil {
						fail(err)
					}
				}
			}()
		}
		all.Wait()
		if taken := time.Since(begin); taken >= longEnough {
			return float64(taken.Nanoseconds()) / float64(each*goroutines)
		}
	}
}

var all = map[string]question{
	"Postgres/VirtualThreads/OneRow":  oneRow,
	"Postgres/VirtualThreads/TenRows": tenRows,
}

func main() {
	wanted := ""
	if len(os.Args) == 2 {
		wanted = os.Args[1]
	}
	if wanted == "--list" {
		for name := range all {
			fmt.Println(name)
		}
		return
	}
	ask, ok := all[wanted]
	if !ok {
		fmt.Fprintln(os.Stderr, "name one of those that --list prints")
		os.Exit(2)
	}
	fmt.Printf("%.2f\n", measure(ask))
}
