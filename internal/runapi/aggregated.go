package runapi

import "net/url"

// The archive is an API of Kubernetes too: its API server has found out who the caller is, has decided by RBAC, and hands the request over.
// A team's archive is the object DefaultArchive of resource archives in the team's namespace; its subresource proxy has the paths of this
// package. It is called proxy as the API server ends other requests after a minute, downloads and logs that are followed among them.
const (
	ArchiveGroup       = "results.vignette.dev"
	ArchiveVersion     = "v1alpha1"
	ArchiveResource    = "archives"
	ArchiveSubresource = "proxy"
	DefaultArchive     = "default"
)

// ArchivePath is the API server's path of the archive of a namespace, or, of empty, of all namespaces; this package's paths follow it.
func ArchivePath(namespace string) string {
	base := "/apis/" + ArchiveGroup + "/" + ArchiveVersion
	if namespace != "" {
		base += "/namespaces/" + url.PathEscape(namespace)
	}
	return base + "/" + ArchiveResource + "/" + DefaultArchive + "/" + ArchiveSubresource
}
