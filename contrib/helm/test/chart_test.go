// Tests of the chart ringwise: helm lints and renders it with each file of values in ci, and each rendered manifest is decoded
// strictly into the types of the API.
//
//	go test ./...                                   builds helm on first use
//	HELM=/usr/bin/helm go test ./...                another helm
//	RINGWISE_PROGRAM=/usr/sbin/ringwise go test ./... also checks the configuration files
package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const (
	chart     = "../ringwise"
	namespace = "ringwise-system"
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
	build := exec.Command("go", "build", "-o", helmProgram, "helm.sh/helm/v4/cmd/helm")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	err = build.Run()
	code := 1
	if err == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// Output of helm, and whether it succeeded.
func helm(args ...string) (stdout, stderr string, ok bool) {
	var out, errors bytes.Buffer
	c := exec.Command(helmProgram, args...)
	c.Stdout, c.Stderr = &out, &errors
	ok = c.Run() == nil
	return out.String(), errors.String(), ok
}

// The files of values.
func valueFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("expected four files of values, found %v, %v", files, err)
	}
	return files
}

// Everything that a release creates.
type manifests struct {
	daemonSets []apps.DaemonSet
	configMaps map[string]core.ConfigMap
	accounts   []core.ServiceAccount
	monitors   []monitoring.PodMonitor
	rules      []monitoring.PrometheusRule
}

// Renders the chart, and decodes each manifest. A field that the type does not have is an error.
func render(t *testing.T, args ...string) manifests {
	t.Helper()
	all := append([]string{"template", "ringwise", chart, "--namespace", namespace}, args...)
	text, errors, ok := helm(all...)
	if !ok {
		t.Fatalf("helm %v: %s", all, errors)
	}
	out := manifests{configMaps: map[string]core.ConfigMap{}}
	names := map[string]bool{}
	for _, doc := range strings.Split("\n"+text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var kind meta.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if kind.Kind == "" {
			continue // comments alone
		}
		if kind.Namespace != namespace {
			t.Errorf("%s %s is in the namespace %q", kind.Kind, kind.Name, kind.Namespace)
		}
		if id := kind.Kind + "/" + kind.Name; names[id] {
			t.Errorf("%s exists twice", id)
		} else {
			names[id] = true
		}
		switch kind.APIVersion + " " + kind.Kind {
		case "apps/v1 DaemonSet":
			out.daemonSets = append(out.daemonSets, decoded[apps.DaemonSet](t, doc))
		case "v1 ConfigMap":
			out.configMaps[kind.Name] = decoded[core.ConfigMap](t, doc)
		case "v1 ServiceAccount":
			out.accounts = append(out.accounts, decoded[core.ServiceAccount](t, doc))
		case "monitoring.coreos.com/v1 PodMonitor":
			out.monitors = append(out.monitors, decoded[monitoring.PodMonitor](t, doc))
		case "monitoring.coreos.com/v1 PrometheusRule":
			out.rules = append(out.rules, decoded[monitoring.PrometheusRule](t, doc))
		default:
			t.Errorf("the chart creates a %s %s, which no test knows", kind.APIVersion, kind.Kind)
		}
	}
	return out
}

func decoded[T any](t *testing.T, doc string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(doc), &out); err != nil {
		t.Errorf("%v in\n%s", err, doc)
	}
	return out
}

func container(t *testing.T, d apps.DaemonSet, name string) core.Container {
	t.Helper()
	all := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(all, func(c core.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("%s has no container %s", d.Name, name)
	}
	return all[i]
}

func TestDecodingIsStrict(t *testing.T) {
	var d apps.DaemonSet
	if err := yaml.UnmarshalStrict([]byte("spec: { template: { spec: { hostNetwrok: true } } }"), &d); err == nil {
		t.Error("an unknown field is accepted")
	}
}

func TestLint(t *testing.T) {
	for _, file := range valueFiles(t) {
		if out, errors, ok := helm("lint", "--strict", chart, "--values", file); !ok {
			t.Errorf("%s: %s%s", file, out, errors)
		}
	}
}

func TestEveryDaemonSet(t *testing.T) {
	for _, file := range valueFiles(t) {
		m := render(t, "--values", file)
		if len(m.daemonSets) == 0 {
			t.Errorf("%s: no DaemonSet", file)
		}
		for _, d := range m.daemonSets {
			spec, pod := d.Spec, d.Spec.Template.Spec
			if !pod.HostNetwork || !pod.HostPID {
				t.Errorf("%s: hostNetwork %v, hostPID %v", d.Name, pod.HostNetwork, pod.HostPID)
			}
			u := spec.UpdateStrategy
			if u.Type != apps.RollingUpdateDaemonSetStrategyType || u.RollingUpdate.MaxUnavailable.IntValue() != 1 ||
				u.RollingUpdate.MaxSurge != nil {
				t.Errorf("%s: updates by %+v", d.Name, u)
			}
			for key, value := range spec.Selector.MatchLabels {
				if spec.Template.Labels[key] != value {
					t.Errorf("%s does not select its own pods by %s", d.Name, key)
				}
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Errorf("%s has a token of the API", d.Name)
			}
			service := container(t, d, "service")
			if s := service.SecurityContext; s.Privileged == nil || !*s.Privileged || s.ProcMount != nil {
				t.Errorf("%s: %+v", d.Name, s)
			}
			if service.LivenessProbe != nil || service.ReadinessProbe.Exec == nil {
				t.Errorf("%s: probes %+v, %+v", d.Name, service.LivenessProbe, service.ReadinessProbe)
			}
			volumes(t, d, m)
		}
		for _, a := range m.accounts {
			if a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken {
				t.Errorf("%s has a token of the API", a.Name)
			}
		}
	}
}

// Every mount has a volume, every volume a mount, and every ConfigMap exists.
func volumes(t *testing.T, d apps.DaemonSet, m manifests) {
	t.Helper()
	pod := d.Spec.Template.Spec
	mounted := map[string]bool{}
	for _, c := range pod.Containers {
		for _, v := range c.VolumeMounts {
			mounted[v.Name] = true
		}
	}
	for _, v := range pod.Volumes {
		if !mounted[v.Name] {
			t.Errorf("%s: no container mounts %s", d.Name, v.Name)
		}
		delete(mounted, v.Name)
		if v.ConfigMap != nil {
			if _, there := m.configMaps[v.ConfigMap.Name]; !there {
				t.Errorf("%s: no ConfigMap %s", d.Name, v.ConfigMap.Name)
			}
		}
	}
	for name := range mounted {
		t.Errorf("%s: no volume %s", d.Name, name)
	}
}

// A group has the nodes and the configuration of its entry.
func TestGroups(t *testing.T) {
	m := render(t, "--values", filepath.Join(chart, "ci", "groups.yaml"))
	if len(m.daemonSets) != 2 {
		t.Fatalf("%d DaemonSets", len(m.daemonSets))
	}
	for group, inside := range map[string]string{"router": `act_on_load = ["eth*"]`, "worker": `exclude_cpus = "4-7"`} {
		i := slices.IndexFunc(m.daemonSets, func(d apps.DaemonSet) bool { return d.Name == "ringwise-"+group })
		if i < 0 {
			t.Fatalf("no DaemonSet ringwise-%s", group)
		}
		d := m.daemonSets[i]
		nodes := d.Spec.Template.Spec.NodeSelector
		if len(nodes) != 2 || nodes["ringwise"] != group || nodes["kubernetes.io/os"] != "linux" {
			t.Errorf("%s selects %v", group, nodes)
		}
		var config string
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name == "config" {
				config = m.configMaps[v.ConfigMap.Name].Data["ringwise.toml"]
			}
		}
		if !strings.Contains(config, inside) {
			t.Errorf("the configuration of %s is\n%s", group, config)
		}
	}
	if c := container(t, m.daemonSets[0], "service"); !strings.HasPrefix(c.Image, "example/ringwise@sha256:0123") {
		t.Errorf("a digest takes precedence over the tag, found %s", c.Image)
	}
}

// A change of the configuration starts a rollout of its group, and of no other one.
func TestRolloutOfOneGroup(t *testing.T) {
	values := filepath.Join(chart, "ci", "groups.yaml")
	template := func(args ...string) map[string]string {
		out := map[string]string{}
		for _, d := range render(t, append([]string{"--values", values}, args...)...).daemonSets {
			text, err := yaml.Marshal(d.Spec.Template)
			if err != nil {
				t.Fatal(err)
			}
			out[d.Name] = string(text)
		}
		return out
	}
	before, after := template(), template("--set", "groups[1].config=version = 1")
	if before["ringwise-worker"] == after["ringwise-worker"] {
		t.Error("the changed group has the same template")
	}
	if before["ringwise-router"] != after["ringwise-router"] {
		t.Error("the template of the other group changed")
	}
}

func TestConfigurationsHaveNoFaults(t *testing.T) {
	program := os.Getenv("RINGWISE_PROGRAM")
	if program == "" {
		t.Skip("RINGWISE_PROGRAM names no program")
	}
	checked := 0
	for _, file := range valueFiles(t) {
		for name, c := range render(t, "--values", file).configMaps {
			text, there := c.Data["ringwise.toml"]
			if !there {
				continue
			}
			path := filepath.Join(t.TempDir(), "ringwise.toml")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(program, "config", "check", path).CombinedOutput(); err != nil {
				t.Errorf("%s of %s: %v\n%s", name, file, err, out)
			}
			checked++
		}
	}
	if checked < 5 {
		t.Errorf("%d configurations", checked)
	}
}

func TestExporter(t *testing.T) {
	m := render(t, "--values", filepath.Join(chart, "ci", "groups.yaml"))
	for _, d := range m.daemonSets {
		c := container(t, d, "exporter")
		s := c.SecurityContext
		if s.Privileged != nil || !*s.RunAsNonRoot || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%+v", s)
		}
		if c.Ports[0].ContainerPort != 9797 || c.Ports[0].HostPort != 9797 || c.Ports[0].Name != "metrics" {
			t.Errorf("%+v", c.Ports)
		}
		for _, v := range c.VolumeMounts {
			if !v.ReadOnly {
				t.Errorf("%s is writable", v.Name)
			}
		}
	}
	m = render(t, "--values", filepath.Join(chart, "ci", "exporter-privileged.yaml"))
	if s := container(t, m.daemonSets[0], "exporter").SecurityContext; s.Privileged == nil || !*s.Privileged {
		t.Errorf("%+v", s)
	}
}

// The pods of a PodMonitor are those of the DaemonSets, and the rules are those of contrib/prometheus.
func TestMonitoring(t *testing.T) {
	m := render(t, "--values", filepath.Join(chart, "ci", "groups.yaml"))
	if len(m.monitors) != 1 || len(m.rules) != 1 {
		t.Fatalf("%d PodMonitors, %d PrometheusRules", len(m.monitors), len(m.rules))
	}
	selector, err := meta.LabelSelectorAsSelector(&m.monitors[0].Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.daemonSets {
		own := d.Spec.Template.Labels
		if !selector.Matches(labels.Set(own)) || own[m.monitors[0].Spec.JobLabel] != "ringwise" {
			t.Errorf("the pods of %s have %v", d.Name, own)
		}
	}
	alerts := map[string]string{}
	rates := 0
	for _, g := range m.rules[0].Spec.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				alerts[r.Alert] = r.Annotations["runbook_url"]
			} else {
				rates++
			}
		}
	}
	source, err := os.ReadFile("../../prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "- alert: "); n != len(alerts) || n == 0 || rates == 0 {
		t.Errorf("%d of %d alerts, %d rates", len(alerts), n, rates)
	}
	if at := alerts["RingwiseExporterDown"]; at != "https://example.org/ringwise/docs/alerts.md#ringwiseexporterdown" {
		t.Errorf("runbook_url %s", at)
	}
}

// Templates of Prometheus in the alerts are not templates of helm.
func TestAlertsKeepTheirTemplates(t *testing.T) {
	m := render(t, "--values", filepath.Join(chart, "ci", "exporter-privileged.yaml"))
	first := m.rules[0].Spec.Groups[0].Rules[0]
	if !strings.Contains(first.Annotations["summary"], "{{ $value }}") || len(m.rules[0].Spec.Groups) != 1 {
		t.Errorf("%+v", first)
	}
}

// A pod that restores runs nothing else, and writes no label.
func TestRestore(t *testing.T) {
	m := render(t, "--values", filepath.Join(chart, "ci", "restore.yaml"))
	pod := m.daemonSets[0].Spec.Template.Spec
	if len(pod.Containers) != 1 || pod.Containers[0].Lifecycle != nil {
		t.Errorf("%+v", pod.Containers)
	}
	if !slices.ContainsFunc(pod.Containers[0].Env, func(e core.EnvVar) bool { return e.Name == "MODE" && e.Value == "restore" }) {
		t.Errorf("%+v", pod.Containers[0].Env)
	}
}

func TestMistakesAreRefused(t *testing.T) {
	one := "groups[0].name=a,groups[0].config=version = 1,groups[0].nodeSelector.x=y"
	cases := []struct{ set, words string }{
		{"image.repository=x", "groups is required"},
		{one, "image.repository is required"},
		{"image.repository=x," + one + ",podMonitor.enabled=true", "podMonitor.enabled needs exporter.enabled"},
		{"image.repository=x," + one + ",exporter.enabled=true,prometheusRule.enabled=true", "prometheusRule.enabled needs"},
		{"image.repository=x," + one + ",exporter.prot=1", "'prot' not allowed"},
		{"image.repository=x," + one + ",mode=trial", "at '/mode'"},
		{"image.repository=x," + one + ",groups[1].name=b,groups[1].config=x,groups[1].nodeSelector.x=y", "select the same nodes"},
		{"image.repository=x," + one + ",groups[1].name=a,groups[1].config=x,groups[1].nodeSelector.x=z", "two groups are named a"},
		{"image.repository=x," + one + ",groups[1].name=b,groups[1].config=x,groups[1].nodeSelector={}", "at '/groups/1/nodeSelector'"},
		{"image.repository=x,groups[0].name=A,groups[0].config=x,groups[0].nodeSelector.x=y", "at '/groups/0/name'"},
	}
	for _, c := range cases {
		out, errors, ok := helm("template", "ringwise", chart, "--set", c.set)
		if ok || !strings.Contains(errors, c.words) {
			t.Errorf("%s: expected an error with %q, found %v %s%s", c.set, c.words, ok, errors, out[:min(len(out), 200)])
		}
	}
}
