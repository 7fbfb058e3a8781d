// Package peers connects the radiods of a cluster: it carries messages between each two of them in encrypted and authenticated
// UDP datagrams that fit the path between them, measures continuously by how much their clocks differ, and tells when one is
// lost. README.md has the protocol.
package peers
