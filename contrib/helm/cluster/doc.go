// Package cluster tests the chart ringwise with a real kube-apiserver, its etcd, the DaemonSet controller and the garbage collector.
package cluster
