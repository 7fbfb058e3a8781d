// Package peers connects the radiods of a cluster. It carries messages between each two in encrypted and
// authenticated UDP datagrams that fit the path. It measures continuously by how much their clocks differ,
// and reports lost peers. README.md has the protocol.
package peers
