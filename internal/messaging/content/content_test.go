package content

import (
	"fmt"
	"net"
	"testing"
	"time"

	"vignette.dev/vignette/internal/messagingconfig"
	"vignette.dev/vignette/internal/traffic/encoding"
	"vignette.dev/vignette/internal/traffic/request"
	soapreq "vignette.dev/vignette/internal/traffic/soap/client"
)

// idBytes is by how much sizes of compressed envelopes may differ, as their ids do.
const idBytes = 64

func TestTheSizeOfAScriptedMessageIsThatOfItsDatagram(t *testing.T) {
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	for _, model := range []string{encoding.Military, encoding.Operational} {
		for _, form := range []string{encoding.XML, encoding.EXI, encoding.EXISchemaless} {
			for _, envelope := range []string{"", request.EnvelopeGzip, request.EnvelopeEXI} {
				t.Run(fmt.Sprintf("%s %s %s", model, form, envelope), func(t *testing.T) {
					config := messagingconfig.Config{Transport: "soap-udp", Encoding: form, Model: model, SOAP: request.SOAPOptions{Envelope: envelope}}
					message := messagingconfig.Message{Type: "TEXT", From: "hq", To: "b-1", Text: "Hill <204> & bridge", Bytes: 1000}
					size, err := ScriptedBytes(config, message, "hq/chat_999999")
					if err != nil {
						t.Fatal(err)
					}
					// The address is 15 bytes shorter than the longest, and the path lacks the addressee's name.
					sent := datagramOf(t, receiver, config, message)
					if size < sent-idBytes || size > sent+idBytes || envelope == "" && size < sent {
						t.Errorf("%d bytes were sent, and %d expected", sent, size)
					}
				})
			}
		}
	}
}

// datagramOf sends a message, and returns the size of its datagram.
func datagramOf(t *testing.T, receiver *net.UDPConn, config messagingconfig.Config, message messagingconfig.Message) int {
	t.Helper()
	made, err := Scripted(config, message)
	if err != nil {
		t.Fatal(err)
	}
	r := request.Request{Path: BasePath}
	r.ContentType, r.ContentEncoding = made.Media()
	if r.Body, err = made.Append(nil, "hq/chat_999999", time.Now()); err != nil {
		t.Fatal(err)
	}
	none := 0
	config.SOAP.UnicastRepeat = &none
	client, err := soapreq.OpenUDP(request.Setup{TimeoutSeconds: 10, SOAP: config.SOAP})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	if _, _, err := client.Do(t.Context(), receiver.LocalAddr().String(), r, request.Events{}); err != nil {
		t.Fatal(err)
	}
	if err := receiver.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := receiver.Read(make([]byte, soapreq.MaxDatagram))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
