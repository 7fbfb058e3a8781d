package rabbitmq

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"vignette.dev/vignette/internal/golden"
	"vignette.dev/vignette/operators/api/v1alpha1"
	"vignette.dev/vignette/operators/apps"
)

func site() apps.Site {
	return apps.Site{
		App: v1alpha1.App{Name: "broker", RabbitMQ: &v1alpha1.RabbitMQ{}}, Node: "nor", Instances: []string{"nor/broker"}, Seed: 7, MetricsPorts: []int{9464},
	}
}

func sites() map[string]apps.Site {
	secure, login, cluster, limited := site(), site(), site(), site()
	secure.App.Security = &v1alpha1.Security{TLS: true, Password: true}
	login.App.Security = &v1alpha1.Security{Password: true}
	cluster.App.RabbitMQ.Cluster, cluster.ClusterPeers = true, []string{"usa", "deu"}
	limited.App.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}}
	limited.MemoryLimit, limited.MetricsPorts = 512<<20, []int{0}
	return map[string]apps.Site{"single": site(), "secure": secure, "login": login, "cluster": cluster, "limited": limited}
}

func TestConfigurationsMatchTheirGoldenFiles(t *testing.T) {
	for name, s := range sites() {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name+".conf", Config(s))
			golden.Check(t, name+".sh", Script(s))
		})
	}
}

func TestPublishersAreBlockedBeforeTheBrokerHasTheMemoryOfItsLimit(t *testing.T) {
	for name, c := range map[string]struct {
		limit, own string
		want       int64
	}{
		"no limit":                 {"0", "", 1 << 30},
		"the usual default":        {"2Gi", "", 1 << 30},
		"a lower default":          {"1Gi", "", 644245094},
		"the limit of a node":      {"512Mi", "", 322122547},
		"a limit of the app's own": {"4Gi", "4Gi", 2576980377},
	} {
		t.Run(name, func(t *testing.T) {
			s := site()
			limit := resource.MustParse(c.limit)
			s.MemoryLimit = limit.Value()
			if c.own != "" {
				s.App.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.own)}}
			}
			if want := fmt.Sprintf("vm_memory_high_watermark.absolute = %d\n", c.want); !strings.Contains(Config(s), want) {
				t.Errorf("got\n%swant %s", Config(s), want)
			}
		})
	}
}

func TestAllMembersOfAClusterHaveOneConfiguration(t *testing.T) {
	nor := sites()["cluster"]
	usa := nor
	usa.Node, usa.ClusterPeers = "usa", []string{"deu", "nor"}
	if Config(nor) != Config(usa) || apps.ErlangCookie(nor) != apps.ErlangCookie(usa) || NodeName(nor) == NodeName(usa) {
		t.Errorf("nor has\n%susa has\n%s", Config(nor), Config(usa))
	}
	other := nor
	other.Seed++
	if apps.ErlangCookie(other) == apps.ErlangCookie(nor) {
		t.Error("experiments of different seeds have one cookie")
	}
}

func TestTheBrokerRunsOnceFromItsFilesAndServesItsStatistics(t *testing.T) {
	r := Kind{}.Render(site())
	if len(r.Instances) != 1 || r.Instances[0].Command[1] != r.Files[2].Path || len(r.MetricsPorts) != 1 || r.MetricsPorts[0] != 9464 || r.Publishes {
		t.Errorf("rendered %+v", r)
	}
	if r := (Kind{}).Render(sites()["limited"]); r.MetricsPorts != nil {
		t.Errorf("an app without a port for its statistics says that it serves %v", r.MetricsPorts)
	}
}
