// Tests of the chart ringwise with a real API server.
//
//	go test ./...                    builds helm on first use
//	HELM=/usr/bin/helm go test ./... another helm
package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	metadataclient "k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	chart     = "../ringwise"
	namespace = "ringwise-system"
	routers   = 40
	workers   = 60
	// A rollout replaces 40 pods, each with minReadySeconds of one second.
	rolloutTimeout = 5 * time.Minute
	syncTimeout    = time.Minute
)

var helmProgram string

func TestMain(m *testing.M) {
	if helmProgram = os.Getenv("HELM"); helmProgram != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "helm")
	if err != nil {
		panic(err)
	}
	helmProgram = filepath.Join(dir, "helm")
	// The same helm as in the tests without a server.
	build := exec.Command("go", "build", "-C", "../test", "-o", helmProgram, "helm.sh/helm/v4/cmd/helm")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	err = build.Run()
	code := 1
	if err == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Everything that the steps of the test share.
type cluster struct {
	*servers
	nodes      *nodes
	record     *record
	kubeconfig string
	home       string
}

// Runs helm, and returns its output.
func (c *cluster) helm(args ...string) (string, error) {
	var out bytes.Buffer
	h := exec.Command(helmProgram, append(args, "--kubeconfig", c.kubeconfig)...)
	h.Env = append(os.Environ(), "HELM_CACHE_HOME="+c.home, "HELM_CONFIG_HOME="+c.home, "HELM_DATA_HOME="+c.home, "KUBECACHEDIR="+c.home)
	h.Stdout, h.Stderr = &out, &out
	err := h.Run()
	return out.String(), err
}

func (c *cluster) mustHelm(t *testing.T, args ...string) {
	t.Helper()
	if out, err := c.helm(args...); err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, out)
	}
}

// Writes values for two groups. helm splits names of files at commas, so names of steps have none. The second container and the feature file are on, so that the server sees all of the pod.
func values(t *testing.T, selector, routerConfig, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	text := fmt.Sprintf(`image: { repository: registry.example/ringwise }
minReadySeconds: 1
exporter: { enabled: true }
nodeFeatureDiscovery: { enabled: true }
groups:
  - name: router
    nodeSelector: { ringwise: %[1]srouter }
    config: |
      version = 1
      [host]
      %[2]s
  - name: worker
    nodeSelector: { ringwise: %[1]sworker }
    config: |
      version = 1
      [host]
      goal = "balanced"
%[3]s
`, selector, routerConfig, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestChartWithAnAPIServer(t *testing.T) {
	seen := &record{}
	c := &cluster{servers: start(t), record: seen, home: t.TempDir()}
	c.startControllers(t, seen)
	c.kubeconfig = seen.proxy(t, c.servers)
	c.createNamespace(t, namespace, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	for i := range routers + workers {
		label := "worker"
		if i < routers {
			label = "router"
		}
		c.createNode(t, nodeName(i), map[string]string{"ringwise": label})
	}
	c.nodes = play(t, c.client)
	c.nodes.begin("router", routers)
	c.nodes.begin("worker", workers)

	steps := []struct {
		name string
		run  func(*testing.T)
	}{
		{"the server validates and its warnings are seen", c.serverValidates},
		{"install starts one pod on each node of a group", c.install},
		{"upgrade replaces one pod at a time", c.upgrade},
		{"upgrade with a faulty configuration stalls at one pod", c.stall},
		{"rollback replaces that pod only", c.rollback},
		{"pods follow the labels of nodes", c.labels},
		{"uninstall leaves nothing", c.uninstall},
	}
	for _, s := range steps {
		// Each step continues with what the one before left.
		if !t.Run(s.name, s.run) {
			break
		}
	}
}

func nodeName(i int) string { return fmt.Sprintf("node%03d", i) }

func (c *cluster) createNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	_, err := c.client.CoreV1().Namespaces().Create(t.Context(),
		&core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// Creates a Node object alone: nothing runs there. The API server taints a new node as not ready; the taint is removed here, as the
// node lifecycle controller does it after the first message of the kubelet.
func (c *cluster) createNode(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	all := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}
	maps.Copy(all, labels)
	api := c.client.CoreV1().Nodes()
	node, err := api.Create(t.Context(), &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: all}}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = nil
	if _, err := api.Update(t.Context(), node, meta.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Sets a label of a node, or removes it (null).
func (c *cluster) label(t *testing.T, node, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"ringwise":%s}}}`, value)
	_, err := c.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// Fails with the warnings of the API server since the last call.
func (c *cluster) noWarnings(t *testing.T) []write {
	t.Helper()
	warnings, writes := c.record.take()
	if len(warnings) > 0 {
		t.Errorf("expected no warning of the API server, found %d, such as %q", len(warnings), warnings[0])
	}
	return writes
}

// Waits until a group has exactly these pods, all ready.
func (c *cluster) allReady(t *testing.T, group string, nodes int) {
	t.Helper()
	c.nodes.wait(t, fmt.Sprintf("%d ready pods of %s", nodes, group), rolloutTimeout, func() (bool, string) {
		pods := c.nodes.of(group)
		n := 0
		for _, p := range pods {
			if ready(p) {
				n++
			}
		}
		return len(pods) == nodes && n == nodes, fmt.Sprintf("%d pods, %d ready", len(pods), n)
	})
}

// Compares what the API server has with the labels of its nodes: one pod on each node of a group, and no other.
func (c *cluster) onePodOnEachNode(t *testing.T) {
	t.Helper()
	list, err := c.client.CoreV1().Nodes().List(t.Context(), meta.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.client.CoreV1().Pods(meta.NamespaceAll).List(t.Context(), meta.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, p := range pods.Items {
		found[p.Spec.NodeName] = append(found[p.Spec.NodeName], groupOf(&p))
	}
	for _, node := range list.Items {
		want := []string{}
		if group := node.Labels["ringwise"]; group != "" {
			want = []string{group}
		}
		if got := found[node.Name]; strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: expected pods of %v, found %v", node.Name, want, got)
		}
		delete(found, node.Name)
	}
	if len(found) > 0 {
		t.Errorf("pods on nodes that do not exist: %v", found)
	}
}

// Waits until the controller has read the newest DaemonSet and reported this state.
func (c *cluster) synced(t *testing.T, group string, updated, unavailable int32) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%d updated and %d unavailable pods in the status of %s", updated, unavailable, group), syncTimeout,
		func() (bool, string) {
			d, err := c.client.AppsV1().DaemonSets(namespace).Get(t.Context(), "ringwise-"+group, meta.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			s := d.Status
			return s.ObservedGeneration == d.Generation && s.UpdatedNumberScheduled == updated && s.NumberUnavailable == unavailable &&
				s.NumberMisscheduled == 0, fmt.Sprintf("generation %d and %+v", d.Generation, s)
		})
}

// Lets the controller compare the DaemonSet with its pods again, and waits until it has: a new generation without a new template.
func (c *cluster) syncAgain(t *testing.T, group string, limit int) {
	t.Helper()
	api := c.client.AppsV1().DaemonSets(namespace)
	patch := fmt.Sprintf(`{"spec":{"revisionHistoryLimit":%d}}`, limit)
	d, err := api.Patch(t.Context(), "ringwise-"+group, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, fmt.Sprintf("the controller to read generation %d of %s", d.Generation, group), syncTimeout, func() (bool, string) {
		now, err := api.Get(t.Context(), d.Name, meta.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return now.Status.ObservedGeneration >= d.Generation, fmt.Sprint("generation ", now.Status.ObservedGeneration)
	})
}

// What the other steps rely on: the server refuses what the chart's schema accepts, and a warning of the server is recorded.
func (c *cluster) serverValidates(t *testing.T) {
	const other = "baseline"
	c.createNamespace(t, other, map[string]string{"pod-security.kubernetes.io/warn": "baseline"})
	c.record.take()
	wrong := values(t, "no-", `goal = "forward"`, `podLabels: { team: "two words" }`)
	out, err := c.helm("install", "ringwise", chart, "--namespace", other, "--values", wrong)
	if err == nil || !strings.Contains(out, "a valid label must") {
		t.Errorf("expected that the server refuses a label with a space, found %v\n%s", err, out)
	}
	_, _ = c.helm("uninstall", "ringwise", "--namespace", other)
	c.record.take()
	c.mustHelm(t, "install", "ringwise", chart, "--namespace", other, "--values", values(t, "no-", `goal = "forward"`, ""))
	warnings, _ := c.record.take()
	if len(warnings) == 0 || !strings.Contains(warnings[0], "would violate PodSecurity") {
		t.Errorf("expected a warning about privileged pods, found %q", warnings)
	}
	c.mustHelm(t, "uninstall", "ringwise", "--namespace", other)
	c.record.take()
}

func (c *cluster) install(t *testing.T) {
	c.mustHelm(t, "install", "ringwise", chart, "--namespace", namespace, "--server-side=true", "--values", values(t, "", `goal = "forward"`, ""))
	c.allReady(t, "router", routers)
	c.allReady(t, "worker", workers)
	c.synced(t, "router", routers, 0)
	c.synced(t, "worker", workers, 0)
	c.onePodOnEachNode(t)
	strict := 0
	for _, w := range c.noWarnings(t) {
		if strings.Contains(w.path, "/daemonsets/ringwise-") && w.fieldValidation == "Strict" && w.status < 300 {
			strict++
		}
	}
	if strict != 2 {
		t.Errorf("expected that helm applies two DaemonSets with fieldValidation=Strict, found %d", strict)
	}
}

func (c *cluster) upgrade(t *testing.T) {
	c.nodes.begin("router", routers)
	c.nodes.begin("worker", workers)
	before := map[string]map[string]types.UID{"router": uids(c.nodes.of("router")), "worker": uids(c.nodes.of("worker"))}
	c.mustHelm(t, "upgrade", "ringwise", chart, "--namespace", namespace, "--values", values(t, "", `goal = "rpc"`, ""))
	c.nodes.wait(t, "40 new pods of router", rolloutTimeout, func() (bool, string) {
		replaced := 0
		for node, p := range c.nodes.of("router") {
			if ready(p) && p.UID != before["router"][node] {
				replaced++
			}
		}
		return replaced == routers, fmt.Sprint(replaced)
	})
	c.synced(t, "router", routers, 0)
	if most := c.nodes.mostUnready(t, "router"); most != 1 {
		t.Errorf("expected that one pod at a time is not ready, found %d", most)
	}
	if most := c.nodes.mostUnready(t, "worker"); most != 0 || !maps.Equal(uids(c.nodes.of("worker")), before["worker"]) {
		t.Errorf("expected that the rollout of router leaves the pods of worker, found %d that were not ready", most)
	}
	hashes := map[string]bool{}
	for _, p := range c.nodes.of("router") {
		hashes[configOf(p)] = true
	}
	if len(hashes) != 1 {
		t.Errorf("expected pods of one configuration, found %v", hashes)
	}
	c.onePodOnEachNode(t)
	c.noWarnings(t)
}

func (c *cluster) stall(t *testing.T) {
	c.nodes.begin("router", routers)
	c.nodes.begin("worker", workers)
	before := uids(c.nodes.of("router"))
	c.mustHelm(t, "upgrade", "ringwise", chart, "--namespace", namespace, "--values", values(t, "", neverReady, ""))
	// The nodes whose pods were replaced, and how many others are ready.
	state := func() (replaced []string, stillReady int) {
		for node, p := range c.nodes.of("router") {
			if p.UID != before[node] {
				replaced = append(replaced, node+" "+string(condition(p)))
			} else if ready(p) {
				stillReady++
			}
		}
		return replaced, stillReady
	}
	c.nodes.wait(t, "a new pod of router that runs and is not ready", rolloutTimeout, func() (bool, string) {
		replaced, stillReady := state()
		return len(replaced) == 1 && strings.HasSuffix(replaced[0], " False"), fmt.Sprintf("%v, %d others ready", replaced, stillReady)
	})
	c.synced(t, "router", 1, 1)
	for i := range 5 {
		c.syncAgain(t, "router", 11+i)
		if replaced, stillReady := state(); len(replaced) != 1 || stillReady != routers-1 {
			t.Fatalf("expected that the rollout stalls at one pod, found %v, and %d others ready", replaced, stillReady)
		}
	}
	if most := c.nodes.mostUnready(t, "router"); most != 1 {
		t.Errorf("expected that one pod is not ready, found %d at a time", most)
	}
	if most := c.nodes.mostUnready(t, "worker"); most != 0 {
		t.Errorf("expected that the pods of worker stay ready, found %d that were not", most)
	}
	c.noWarnings(t)
}

func (c *cluster) rollback(t *testing.T) {
	before := c.nodes.of("router")
	c.mustHelm(t, "rollback", "ringwise", "--namespace", namespace)
	c.allReady(t, "router", routers)
	c.synced(t, "router", routers, 0)
	replaced := 0
	for node, p := range c.nodes.of("router") {
		switch {
		case p.UID == before[node].UID:
		case ready(before[node]):
			t.Errorf("%s: the rollback replaced a pod that was ready", node)
		default:
			replaced++
		}
	}
	if replaced != 1 {
		t.Errorf("expected that the rollback replaces one pod, found %d", replaced)
	}
	// Counted since the upgrade that stalled.
	if most := c.nodes.mostUnready(t, "router"); most != 1 {
		t.Errorf("expected that one pod at a time is not ready, found %d", most)
	}
	c.onePodOnEachNode(t)
	c.noWarnings(t)
}

func (c *cluster) labels(t *testing.T) {
	added, moved := nodeName(routers+workers), nodeName(routers)
	c.createNode(t, added, nil)
	c.syncAgain(t, "router", 20)
	c.syncAgain(t, "worker", 20)
	c.onePodOnEachNode(t)

	c.label(t, added, `"router"`)
	c.allReady(t, "router", routers+1)
	c.onePodOnEachNode(t)

	c.label(t, moved, `"router"`)
	c.allReady(t, "router", routers+2)
	c.gone(t, "worker", moved)
	c.onePodOnEachNode(t)

	c.label(t, added, "null")
	c.gone(t, "router", added)
	c.onePodOnEachNode(t)
	c.noWarnings(t)
}

// Waits until a node has no pod of the group, not even one that is being deleted.
func (c *cluster) gone(t *testing.T, group, node string) {
	t.Helper()
	c.nodes.wait(t, fmt.Sprintf("the end of the pod of %s on %s", group, node), syncTimeout, func() (bool, string) {
		name := c.nodes.on(group, node)
		return name == "", name
	})
}

func (c *cluster) uninstall(t *testing.T) {
	c.mustHelm(t, "uninstall", "ringwise", "--namespace", namespace)
	waitUntil(t, "an empty namespace", rolloutTimeout, func() (bool, string) {
		left := c.objects(t)
		return len(left) == 0, fmt.Sprintf("%d objects: %v", len(left), left[:min(len(left), 5)])
	})
	c.noWarnings(t)
}

// All objects of the namespace, of every kind that the server lists, but events: those are removed after an hour.
func (c *cluster) objects(t *testing.T) []string {
	t.Helper()
	lists, err := discovery.ServerPreferredNamespacedResources(c.client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	client := metadataclient.NewForConfigOrDie(c.config(rest.NoWarnings{}))
	found, kinds := []string{}, 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if r.Kind == "Event" || !strings.Contains(strings.Join(r.Verbs, " "), "list") {
				continue
			}
			all, err := client.Resource(version.WithResource(r.Name)).Namespace(namespace).List(context.Background(), meta.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			kinds++
			for _, o := range all.Items {
				found = append(found, r.Kind+" "+o.Name)
			}
		}
	}
	if kinds < 20 {
		t.Fatalf("expected more than 20 kinds of objects, found %d", kinds)
	}
	return found
}
