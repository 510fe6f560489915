package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// A configuration with this line stands for one with which the pod of a real node would not become ready.
const neverReady = "goal = \"never_ready\""

// Follows the pods of the namespace by one watch, so that no state between two events is missed, and plays the scheduler and the
// kubelets: there are none.
type nodes struct {
	client *kubernetes.Clientset
	queue  workqueue.TypedRateLimitingInterface[string]

	mutex   sync.Mutex
	changed chan struct{} // closed at the next event
	pods    map[string]*core.Pod
	groups  map[string]*group
	faults  []string
}

// What was seen of the pods of a group.
type group struct {
	nodes       int // that should have a pod
	allReady    bool
	mostUnready int // at a time, after all were ready
}

func groupOf(p *core.Pod) string  { return p.Labels["app.kubernetes.io/component"] }
func configOf(p *core.Pod) string { return p.Annotations["ringwise/config"] }

func condition(p *core.Pod) core.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == core.PodReady {
			return c.Status
		}
	}
	return ""
}

// A pod that is being deleted does not serve its node any more, even if its condition has not changed yet.
func ready(p *core.Pod) bool { return p.DeletionTimestamp == nil && condition(p) == core.ConditionTrue }

func play(t *testing.T, client *kubernetes.Clientset) *nodes {
	t.Helper()
	n := &nodes{
		client:  client,
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		changed: make(chan struct{}),
		pods:    map[string]*core.Pod{},
		groups:  map[string]*group{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	watching, err := client.CoreV1().Pods(namespace).Watch(ctx, meta.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for e := range watching.ResultChan() {
			n.event(e)
		}
		if ctx.Err() == nil {
			n.fault("the watch of the pods ended")
		}
	})
	for range 4 {
		running.Go(func() {
			for {
				name, shutdown := n.queue.Get()
				if shutdown {
					return
				}
				if err := n.serve(ctx, name); err != nil {
					n.queue.AddRateLimited(name)
				} else {
					n.queue.Forget(name)
				}
				n.queue.Done(name)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		watching.Stop()
		n.queue.ShutDown()
		running.Wait()
	})
	return n
}

func (n *nodes) fault(text string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.faults = append(n.faults, text)
}

func (n *nodes) event(e watch.Event) {
	p, ok := e.Object.(*core.Pod)
	if !ok {
		n.fault(fmt.Sprintf("watch of the pods: %v", e.Object))
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if e.Type == watch.Deleted {
		delete(n.pods, p.Name)
	} else {
		n.pods[p.Name] = p
		n.queue.Add(p.Name)
	}
	n.count()
	close(n.changed)
	n.changed = make(chan struct{})
}

// Counts after each event. The caller holds the lock.
func (n *nodes) count() {
	readyNodes := map[string]int{}
	live := map[string]string{}
	for _, p := range n.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		if ready(p) {
			readyNodes[groupOf(p)]++
		}
		on := groupOf(p) + " on " + target(p)
		if other := live[on]; other != "" {
			n.faults = append(n.faults, fmt.Sprintf("two pods of %s: %s and %s", on, other, p.Name))
		}
		live[on] = p.Name
	}
	for name, g := range n.groups {
		unready := g.nodes - readyNodes[name]
		g.allReady = g.allReady || unready == 0
		if g.allReady {
			g.mostUnready = max(g.mostUnready, unready)
		}
	}
}

// Begins to count again for a group with this number of nodes.
func (n *nodes) begin(name string, nodes int) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.groups[name] = &group{nodes: nodes}
	n.count()
}

// The largest number of nodes without a ready pod at a time since all were ready for the first time.
func (n *nodes) mostUnready(t *testing.T, name string) int {
	t.Helper()
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.groups[name].allReady {
		t.Fatalf("the pods of %s were never all ready", name)
	}
	return n.groups[name].mostUnready
}

// The pods of a group now, by node, without those that are being deleted.
func (n *nodes) of(name string) map[string]*core.Pod {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	out := map[string]*core.Pod{}
	for _, p := range n.pods {
		if p.DeletionTimestamp == nil && groupOf(p) == name {
			out[target(p)] = p
		}
	}
	return out
}

// The name of the pod of a group on a node, also while it is being deleted.
func (n *nodes) on(group, node string) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, p := range n.pods {
		if groupOf(p) == group && target(p) == node {
			return p.Name
		}
	}
	return ""
}

// Waits for a condition on the pods, evaluated after each event.
func (n *nodes) wait(t *testing.T, what string, timeout time.Duration, holds func() (bool, string)) {
	t.Helper()
	end := time.After(timeout)
	for {
		n.mutex.Lock()
		changed := n.changed
		faults := strings.Join(n.faults, "\n")
		n.mutex.Unlock()
		if faults != "" {
			t.Fatal(faults)
		}
		ok, found := holds()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("waited %v for %s; found %s", timeout, what, found)
		}
	}
}

// The node for which the controller made a pod. It writes it into the affinity, and the scheduler binds the pod.
func target(p *core.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, f := range term.MatchFields {
				if f.Key == "metadata.name" && len(f.Values) == 1 {
					return f.Values[0]
				}
			}
		}
	}
	return ""
}

// Does the next thing that a scheduler or a kubelet would do with a pod.
func (n *nodes) serve(ctx context.Context, name string) error {
	n.mutex.Lock()
	p := n.pods[name]
	n.mutex.Unlock()
	if p == nil {
		return nil
	}
	p = p.DeepCopy()
	pods := n.client.CoreV1().Pods(namespace)
	var err error
	switch {
	case p.DeletionTimestamp != nil:
		grace := int64(0)
		err = pods.Delete(ctx, name, meta.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: &meta.Preconditions{UID: &p.UID}})
	case p.Spec.NodeName == "":
		node := target(p)
		if node == "" {
			n.fault(fmt.Sprintf("%s: the affinity names no node", name))
			return nil
		}
		err = pods.Bind(ctx, &core.Binding{
			ObjectMeta: meta.ObjectMeta{Name: name, UID: p.UID},
			Target:     core.ObjectReference{Kind: "Node", Name: node},
		}, meta.CreateOptions{})
	case condition(p) == "":
		err = n.begun(ctx, p)
	}
	if errors.IsNotFound(err) || errors.IsConflict(err) {
		return nil // an event with the new state follows, or has arrived
	}
	return err
}

// Starts the containers: a kubelet first reads the ConfigMaps of the volumes. They exist only when the chart created them.
func (n *nodes) begun(ctx context.Context, p *core.Pod) error {
	status := core.ConditionTrue
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		m, err := n.client.CoreV1().ConfigMaps(namespace).Get(ctx, v.ConfigMap.Name, meta.GetOptions{})
		if errors.IsNotFound(err) {
			return fmt.Errorf("volume %s: %v", v.Name, err)
		}
		if err != nil {
			return err
		}
		if strings.Contains(m.Data["ringwise.toml"], neverReady) {
			status = core.ConditionFalse
		}
	}
	now := meta.Now()
	p.Status.Phase, p.Status.StartTime = core.PodRunning, &now
	p.Status.Conditions = []core.PodCondition{
		{Type: core.PodScheduled, Status: core.ConditionTrue, LastTransitionTime: now},
		{Type: core.PodReady, Status: status, LastTransitionTime: now},
	}
	_, err := n.client.CoreV1().Pods(namespace).UpdateStatus(ctx, p, meta.UpdateOptions{})
	return err
}

// The UIDs of pods by node: a pod that is replaced has another one.
func uids(pods map[string]*core.Pod) map[string]types.UID {
	out := map[string]types.UID{}
	for node, p := range pods {
		out[node] = p.UID
	}
	return out
}
