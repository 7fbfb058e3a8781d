package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"vignette.dev/vignette/operators/api/v1alpha1"
)

// stamps of what a node's radio sent and received, by what the frame's TCP segment carried: when radiod first saw it. Both the message
// and its delivery are the same MQTT packet.
type stamps struct{ out, in map[string]int64 }

// stampsIn a capture of radiod's: pcapng with one interface to a section, stamps in nanoseconds, and in the flags which way a frame went.
func stampsIn(capture []byte) stamps {
	const packetBlock, packetHeader, flagsAfter, outbound = 6, 28, 4, 2
	s := stamps{map[string]int64{}, map[string]int64{}}
	for len(capture) >= 12 {
		kind, length := binary.LittleEndian.Uint32(capture), int(binary.LittleEndian.Uint32(capture[4:]))
		if length < 12 || length > len(capture) {
			return s
		}
		if block := capture[:length]; kind == packetBlock {
			at := int64(binary.LittleEndian.Uint32(block[12:]))<<32 | int64(binary.LittleEndian.Uint32(block[16:]))
			kept := int(binary.LittleEndian.Uint32(block[20:]))
			flags := binary.LittleEndian.Uint32(block[packetHeader+(kept+3)&^3+flagsAfter:])
			into := s.in
			if flags&3 == outbound {
				into = s.out
			}
			if carried := carriedBy(block[packetHeader : packetHeader+kept]); carried != "" && into[carried] == 0 {
				into[carried] = at
			}
		}
		capture = capture[length:]
	}
	return s
}

// carriedBy a frame's TCP segment, if it has one.
func carriedBy(frame []byte) string {
	const ethernet, ip, tcp = 14, 20, 6
	if len(frame) < ethernet+ip+20 || frame[12] != 8 || frame[13] != 0 || frame[23] != tcp {
		return ""
	}
	length := int(binary.BigEndian.Uint16(frame[ethernet+2:]))
	begin := ethernet + ip + int(frame[ethernet+ip+12]>>4)*4
	if end := ethernet + length; begin < end && end <= len(frame) {
		return string(frame[begin:end])
	}
	return ""
}

// reportTurnaround takes the round trips apart, by radiod's own stamps: what the radio took, and what the node with the broker.
func (b *bed) reportTurnaround(ctx context.Context, e *v1alpha1.Experiment) error {
	seen := map[string]stamps{}
	for _, node := range []string{podClient, podBroker, machineClient, machineBroker} {
		capture, err := b.archived(ctx, e, "captures/run/wan/"+node+".pcapng")
		if err != nil {
			return err
		}
		seen[node] = stampsIn(capture)
	}
	rows := [][]string{{"from", "to", "messages", "radio there ms", "in the node with the broker ms", "ratio to pods", "radio back ms"}}
	var pods time.Duration
	for _, client := range []string{podClient, machineClient} {
		for _, broker := range []string{podBroker, machineBroker} {
			var there, within, again []time.Duration
			for carried, sent := range seen[client].out {
				arrived, left, came := seen[broker].in[carried], seen[broker].out[carried], seen[client].in[carried]
				if strings.Contains(carried, client+"-"+broker) && arrived > 0 && left > 0 && came > 0 {
					there, within, again = append(there, time.Duration(arrived-sent)), append(within, time.Duration(left-arrived)), append(again, time.Duration(came-left))
				}
			}
			for _, all := range [][]time.Duration{there, within, again} {
				slices.Sort(all)
			}
			median := quantile(within, 0.5)
			if pods == 0 {
				pods = median
			}
			rows = append(rows, []string{kindOf(client), kindOf(broker), fmt.Sprint(len(within)), milliseconds(quantile(there, 0.5)), milliseconds(median), ratio(median, pods),
				milliseconds(quantile(again, 0.5))})
		}
	}
	table("the same round trips taken apart at the radios, medians by the host's clock", rows...)
	return nil
}
