// Package emanepb has the messages of EMANE 1.5 that are used here, under names of our own: events, and those of the control port.
package emanepb
