package dataplane

import "testing"

func TestNoGonePortIsForgottenWhereThereAreTooManyChanges(t *testing.T) {
	e := newEvents()
	e.add(Event{Gone: 3})
	for i := range maxChanges + 5 {
		e.add(Event{Network: "run", Change: i})
	}
	all := e.next(nil)
	if n := len(all); n != maxChanges+2 || all[0].Gone != 3 || all[1].Change != 5 || all[n-1].Forgotten != 5 {
		t.Errorf("%d events, from %+v and %+v to %+v; want the gone port, the last changes and 5 forgotten", n, all[0], all[1], all[n-1])
	}
}
