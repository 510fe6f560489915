// Package chart has the tests of the chart ringwise.
package chart
