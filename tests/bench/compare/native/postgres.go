package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// table is a queue as pgmq makes it: a receive hides rows for a while, an acknowledgement deletes them.
type table struct {
	target
	pool *pgxpool.Pool
}

const createTable = `
CREATE TABLE %[1]s (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  visible_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  receives integer NOT NULL DEFAULT 0,
  body bytea NOT NULL
);
CREATE INDEX ON %[1]s (visible_at)`

const receiveRows = `
WITH free AS (
  SELECT id FROM %[1]s WHERE visible_at <= clock_timestamp() ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE %[1]s AS rows SET visible_at = clock_timestamp() + interval '30 seconds', receives = receives + 1
FROM free WHERE rows.id = free.id RETURNING rows.id, rows.body`

func newTable(to target) (broker, error) {
	to.name = strings.ReplaceAll(to.name, "-", "_")
	options, err := pgxpool.ParseConfig(to.url)
	if err != nil {
		return nil, err
	}
	options.MaxConns = int32(to.callers)
	pool, err := pgxpool.NewWithConfig(context.Background(), options)
	return &table{to, pool}, err
}

func (t *table) sql(statement string) string { return fmt.Sprintf(statement, t.name) }

func (t *table) execute(statement string, values ...any) error {
	_, err := t.pool.Exec(context.Background(), t.sql(statement), values...)
	return err
}

func (t *table) create() error { return t.execute(createTable) }

func (t *table) drop() error { return t.execute("DROP TABLE %s") }

func (t *table) caller(operation string, _ int) (caller, error) {
	switch operation {
	case "send":
		return func() (int, error) {
			return 1, t.execute("INSERT INTO %s (body) VALUES ($1)", t.body)
		}, nil
	case "produce":
		bodies := make([][]byte, batch)
		for nth := range bodies {
			bodies[nth] = t.body
		}
		return func() (int, error) {
			return batch, t.execute("INSERT INTO %s (body) SELECT unnest($1::bytea[])", bodies)
		}, nil
	case "work":
		return t.work, nil
	}
	return t.reader(), nil
}

type row struct {
	ID   int64
	Body []byte
}

func (t *table) query(statement string, values ...any) ([]row, error) {
	rows, err := t.pool.Query(context.Background(), t.sql(statement), values...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[row])
}

func (t *table) work() (int, error) {
	received, err := t.query(receiveRows, few)
	if err != nil {
		return 0, err
	}
	ids := make([]int64, len(received))
	for nth, one := range received {
		ids[nth] = one.ID
	}
	return len(ids), t.execute("DELETE FROM %s WHERE id = ANY($1)", ids)
}

func (t *table) reader() caller {
	last := int64(0)
	return func() (int, error) {
		rows, err := t.query("SELECT id, body FROM %s WHERE id > $1 ORDER BY id LIMIT $2", last, batch)
		if err != nil {
			return 0, err
		}
		last = 0
		if len(rows) == batch {
			last = rows[batch-1].ID
		}
		return len(rows), nil
	}
}
