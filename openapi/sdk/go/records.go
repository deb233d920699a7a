package millstream

import (
	"encoding/json"
	"time"
)

// Record is a record of a stream.
type Record struct {
	Shard       int
	Offset      int64
	Key         string
	Data        []byte
	ContentType string
	Headers     map[string]string
	ArrivalTime time.Time
	// EventTime is zero if the record has none.
	EventTime time.Time
}

// UnmarshalJSON decodes a record of the REST API.
func (r *Record) UnmarshalJSON(data []byte) error {
	var in struct {
		Shard       int               `json:"shard"`
		Offset      int64             `json:"offset"`
		Key         string            `json:"key"`
		Data        json.RawMessage   `json:"data"`
		DataBase64  string            `json:"data_base64"`
		ContentType string            `json:"content_type"`
		Headers     map[string]string `json:"headers"`
		ArrivalTime time.Time         `json:"arrival_time"`
		EventTime   time.Time         `json:"event_time"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	body, err := decodeBody(in.Data, in.DataBase64, in.ContentType)
	*r = Record{in.Shard, in.Offset, in.Key, body, in.ContentType, in.Headers, in.ArrivalTime, in.EventTime}
	return err
}

// Text returns the data as text.
func (r *Record) Text() string { return string(r.Data) }

// JSON decodes the data.
func (r *Record) JSON(value any) error { return json.Unmarshal(r.Data, value) }

// Gap is a range of offsets that are no longer available, or were never used: "expired" by retention; "failover", without a
// record that was acknowledged; or a "hole", whose records, if there were any, are lost.
type Gap struct {
	Shard  int    `json:"shard"`
	First  int64  `json:"first"`
	Next   int64  `json:"next"`
	Reason string `json:"reason"`
}
