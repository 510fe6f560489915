package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the service publishes: schemas/ringwise.daemon.v1.json. The program writes it with this indentation.
func published(pid int, problem any, pauses ...any) string {
	if pauses == nil {
		pauses = []any{}
	}
	text, err := json.MarshalIndent(map[string]any{
		"schema": "ringwise.daemon", "version": 1,
		"process": map[string]any{"pid": pid, "started": 1},
		"pauses":  pauses, "problem": problem, "paused": false,
		"manual":  []any{map[string]any{"setting": map[string]any{"knob": "irq_cpus"}}},
		"actions": []any{map[string]any{"ending": "refused", "why": `x "failed": { y`}},
		"totals":  map[string]any{"kept": 0, "failed": 3},
	}, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(text)
}

func pause(why any) any {
	return map[string]any{"interface": "eth0", "until_unix": 1, "why": why}
}

// The script with other directories than those of the pod.
func script(t *testing.T, name, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "files", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	moved := strings.NewReplacer("/node/", dir+"/node/", "/chart/own", dir+"/own").Replace(string(text))
	if err := os.WriteFile(path, []byte(moved), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadiness(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"node/run", "own"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	me := os.Getpid()
	path := script(t, "ready.sh", dir)
	probe := func(mode string) (string, bool) {
		c := exec.Command("sh", path)
		c.Env = append(os.Environ(), "MODE="+mode)
		out, err := c.CombinedOutput()
		return string(out), err == nil
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, ready := probe("keep"); ready || !strings.Contains(out, "has not started") {
		t.Errorf("without a service: %v %s", ready, out)
	}
	write("own/pid", fmt.Sprintln(me))
	failed := map[string]any{"failed": map[string]any{"why": "EIO"}}
	competing := map[string]any{"competing": map[string]any{"program": "irqbalance"}}
	cases := []struct{ name, state, words string }{
		{"it runs", published(me, nil), ""},
		{"pauses of a person and because of a competing program", published(me, nil, pause("command"), pause(competing)), ""},
		{"a transaction failed", published(me, nil, pause("command"), pause(failed)), "a transaction failed"},
		{"a problem", published(me, "unknown key \"gaol\""), "gaol"},
		{"a problem that looks like none", published(me, "\n  \"problem\": null"), "problem"},
		{"the service before", published(me+1, nil), "has not started"},
	}
	for _, c := range cases {
		write("node/run/daemon.json", c.state)
		if out, ready := probe("keep"); ready != (c.words == "") || !strings.Contains(out, c.words) {
			t.Errorf("%s: %v %s", c.name, ready, out)
		}
	}
	write("node/run/daemon.json", published(me, nil))
	write("node/run/.helm-reload", "")
	if out, ready := probe("keep"); ready || !strings.Contains(out, "not loaded") {
		t.Errorf("a configuration that is not loaded: %v %s", ready, out)
	}
	if _, ready := probe("restore"); ready {
		t.Error("ready before the restore")
	}
	write("own/restored", "")
	if out, ready := probe("restore"); !ready {
		t.Error(out)
	}
	// A process that has ended, and that its parent has not waited for.
	gone := exec.Command("true")
	if err := gone.Start(); err != nil {
		t.Fatal(err)
	}
	for state := ""; !strings.Contains(state, ") Z "); {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", gone.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		state = string(text)
	}
	_ = os.Remove(filepath.Join(dir, "node/run/.helm-reload"))
	write("own/pid", fmt.Sprintln(gone.Process.Pid))
	write("node/run/daemon.json", published(gone.Process.Pid, nil))
	if out, ready := probe("keep"); ready || !strings.Contains(out, "has ended") {
		t.Errorf("a service that has ended: %v %s", ready, out)
	}
	_ = gone.Wait()
}
