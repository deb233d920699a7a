package millstream

import (
	"encoding/base64"
	"encoding/json"
)

const jsonType = "application/json"

// encodeBody returns the bytes and the content type of a body.
//
//	value           stored as         content type
//	[]byte          as it is          none, unless specified
//	string          UTF-8             none, unless specified
//	anything else   compact JSON      application/json
func encodeBody(body any, contentType string) ([]byte, string, error) {
	switch value := body.(type) {
	case []byte:
		return value, contentType, nil
	case string:
		return []byte(value), contentType, nil
	}
	encoded, err := json.Marshal(body)
	return encoded, valueOr(contentType, jsonType), err
}

// decodeBody returns the bytes of a body that arrived as text, as a JSON value or in base64.
func decodeBody(value json.RawMessage, encoded, contentType string) ([]byte, error) {
	if value == nil {
		return base64.StdEncoding.DecodeString(encoded)
	}
	if contentType == jsonType || value[0] != '"' {
		return value, nil
	}
	var text string
	err := json.Unmarshal(value, &text)
	return []byte(text), err
}

const (
	itemsMax = 1_000
	bytesMax = 4 << 20 // of bodies in one call, which may have 16 MiB with all that is around them
)

// batches splits items so that each batch fits into a call.
func batches[T any](items []T, size func(T) int) [][]T {
	var result [][]T
	start, total := 0, 0
	for at, item := range items {
		added := size(item)
		if at > start && (at-start == itemsMax || total+added > bytesMax) {
			result = append(result, items[start:at])
			start, total = at, 0
		}
		total += added
	}
	if start < len(items) {
		result = append(result, items[start:])
	}
	return result
}
