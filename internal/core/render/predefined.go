package render

import (
	"maps"
	"slices"

	"vignette.dev/vignette/internal/traffic/mqttsn"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
	"vignette.dev/vignette/operators/apps/traffic"
)

// assignPredefinedTopics numbers the topics of MQTT-SN publishers with QoS -1 alphabetically, from 1. Without a connection a
// publisher cannot request ids. All gateways of the experiment know all topics, so that a publisher may fail over. Names of
// two characters need no id.
func assignPredefinedTopics(sites Sites) {
	ids := map[string]uint16{}
	each := func(use func(*apps.Site)) {
		for _, node := range slices.Sorted(maps.Keys(sites)) {
			for i := range sites[node] {
				use(&sites[node][i])
			}
		}
	}
	each(func(s *apps.Site) {
		for _, topic := range topicsWithoutConnection(*s) {
			ids[topic] = 0
		}
	})
	for i, topic := range slices.Sorted(maps.Keys(ids)) {
		ids[topic] = uint16(i + 1)
	}
	each(func(s *apps.Site) {
		if s.App.MQTTSNGateway != nil && len(ids) > 0 {
			s.PredefinedTopics = ids
		}
		for _, topic := range topicsWithoutConnection(*s) {
			if s.PredefinedTopics == nil {
				s.PredefinedTopics = map[string]uint16{}
			}
			s.PredefinedTopics[topic] = ids[topic]
		}
	})
}

// topicsWithoutConnection are the topics of a publisher's instances that need predefined ids.
func topicsWithoutConnection(s apps.Site) (topics []string) {
	if p := s.App.Publisher; p == nil || p.Protocol != v1alpha1.ProtocolMQTTSN || p.QoS != mqttsn.QoSMinusOne {
		return nil
	}
	for i := range s.Instances {
		topic := traffic.Topic(s, i)
		if _, short := mqttsn.ShortName(topic); !short {
			topics = append(topics, topic)
		}
	}
	return topics
}
