// Reads streams of HTTP requests as Go's net/http serves them, and says what it saw.
//
// Each input on stdin is a length of four bytes, big-endian, and as many bytes of a client's
// connection. Each output is a line of JSON: the requests that reached a handler. Bytes are shown as
// the characters with their numbers.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type request struct {
	Method  string              `json:"method"`
	Target  string              `json:"target"`
	Version string              `json:"version"`
	Host    string              `json:"host"`
	Headers map[string][]string `json:"headers"`
	Body    string              `json:"body"`
	IsCut   bool                `json:"is_cut"`
}

type seen struct {
	Requests []request `json:"requests"`
}

func text(raw string) string {
	runes := make([]rune, len(raw))
	for at := 0; at < len(raw); at++ {
		runes[at] = rune(raw[at])
	}
	return string(runes)
}

// A client that has sent all its bytes, and ignores the answers.
type client struct {
	sent   *bytes.Reader
	once   sync.Once
	closed chan struct{}
}

func (c *client) Read(p []byte) (int, error)       { return c.sent.Read(p) }
func (c *client) Write(p []byte) (int, error)      { return len(p), nil }
func (c *client) Close() error                     { c.once.Do(func() { close(c.closed) }); return nil }
func (c *client) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *client) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *client) SetDeadline(time.Time) error      { return nil }
func (c *client) SetReadDeadline(time.Time) error  { return nil }
func (c *client) SetWriteDeadline(time.Time) error { return nil }

type listener struct{ clients chan net.Conn }

func (l listener) Accept() (net.Conn, error) { return <-l.clients, nil }
func (l listener) Close() error              { return nil }
func (l listener) Addr() net.Addr            { return &net.TCPAddr{} }

func main() {
	var found seen
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		headers := map[string][]string{}
		for name, values := range r.Header {
			for _, value := range values {
				key := text(strings.ToLower(name))
				headers[key] = append(headers[key], text(value))
			}
		}
		found.Requests = append(found.Requests, request{
			r.Method, text(r.RequestURI), r.Proto, text(r.Host), headers, text(string(body)), err != nil,
		})
	}
	clients := listener{make(chan net.Conn)}
	server := &http.Server{
		Handler: http.HandlerFunc(handler),
		// net/http logs what it can't read.
		ErrorLog:                     log.New(io.Discard, "", 0),
		DisableGeneralOptionsHandler: true,
	}
	go server.Serve(clients)
	input, output := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		var size uint32
		if binary.Read(input, binary.BigEndian, &size) != nil {
			output.Flush()
			return
		}
		raw := make([]byte, size)
		if _, err := io.ReadFull(input, raw); err != nil {
			log.Fatal(err)
		}
		one := &client{sent: bytes.NewReader(raw), closed: make(chan struct{})}
		found = seen{Requests: []request{}}
		clients.clients <- one
		<-one.closed
		line, err := json.Marshal(found)
		if err != nil {
			log.Fatal(err)
		}
		output.Write(append(line, '\n'))
		if input.Buffered() == 0 {
			output.Flush()
		}
	}
}
