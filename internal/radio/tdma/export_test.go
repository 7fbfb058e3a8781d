package tdma

// Statistics of all attached nodes.
func (m *Model) Statistics(reset bool) (all []PortStatistics) {
	for _, s := range m.stations {
		of := m.StatisticsOf(s.port, reset)
		all = append(all, of)
	}
	return all
}
