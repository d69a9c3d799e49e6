// Every call of kadm that a cluster without security can answer, done once: what each gave, for a comparison of clusters.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

type told struct {
	Call  string
	Error string
	Found any
}

func tellStory(ctx context.Context, admin *kadm.Client, topic string) []told {
	group, missing, nobody := topic+"-group", topic+"-missing", topic+"-nobody"
	value := func(text string) *string { return &text }
	set := func(key string, to *string) []kadm.AlterConfig {
		return []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: to}}
	}
	var there, elsewhere kadm.TopicsSet
	there.Add(topic, 0)
	elsewhere.Add(missing, 0)
	offsets := func(at int64) kadm.Offsets {
		var wanted kadm.Offsets
		wanted.AddOffset(topic, 0, at, -1)
		return wanted
	}
	assigned := func(name string, brokers []int32) (request kadm.AlterPartitionAssignmentsReq) {
		request.Assign(name, 0, brokers)
		return request
	}
	directory := kadm.AlterReplicaLogDirsReq{}
	directory.Add("/nowhere", there)
	var epochs kadm.OffsetForLeaderEpochRequest
	epochs.Add(topic, 0, 0)
	limit := func(rate float64, remove bool) []kadm.AlterClientQuotaEntry {
		return []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: value(group)}},
			Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: rate, Remove: remove}},
		}}
	}
	wrong := limit(1, false)
	wrong[0].Ops[0].Key = "nosuch"
	ours := []kadm.DescribeClientQuotaComponent{{Type: "client-id", MatchName: value(group), MatchType: 0}}

	var story []told
	ask := func(call string, found any, err error) {
		story = append(story, told{call, told_error(err), found})
	}
	r1, err := admin.CreateTopics(ctx, 2, 1, map[string]*string{"retention.ms": value("1234567")}, topic, "a b")
	ask("CreateTopics", r1, err)
	r2, err := admin.ValidateCreateTopics(ctx, 1, 9, nil, missing, topic)
	ask("ValidateCreateTopics", r2, err)
	r3, err := admin.ValidateUpdatePartitions(ctx, 1, topic, missing)
	ask("ValidateUpdatePartitions", r3, err)
	r4, err := admin.CreatePartitions(ctx, 1, topic)
	ask("CreatePartitions", r4, err)
	for details, err := admin.ListTopics(ctx, topic); err == nil && len(details[topic].Partitions) < 3; {
		time.Sleep(100 * time.Millisecond)
		details, err = admin.ListTopics(ctx, topic)
	}
	r5, err := admin.ListTopics(ctx, topic, missing)
	ask("ListTopics", r5, err)
	r6, err := admin.BrokerMetadata(ctx)
	ask("BrokerMetadata", r6, err)
	r7, err := admin.AlterTopicConfigs(ctx, set("segment.bytes", value("1048576")), topic, missing)
	ask("AlterTopicConfigs", r7, err)
	r8, err := admin.ValidateAlterTopicConfigs(ctx, set("segment.bytes", value("few")), topic)
	ask("ValidateAlterTopicConfigs", r8, err)
	r9, err := admin.DescribeTopicConfigs(ctx, topic, missing)
	ask("DescribeTopicConfigs", r9, err)
	r10, err := admin.AlterTopicConfigsState(ctx, set("cleanup.policy", value("compact")), topic)
	ask("AlterTopicConfigsState", r10, err)
	r11, err := admin.AlterBrokerConfigs(ctx, set("log.cleaner.threads", value("2")), 0)
	ask("AlterBrokerConfigs", r11, err)
	r12, err := admin.ValidateAlterBrokerConfigs(ctx, set("broker.id", value("2")), 0)
	ask("ValidateAlterBrokerConfigs", r12, err)
	r13, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "log.cleaner.threads"}}, 0)
	ask("AlterBrokerConfigs, deleted", r13, err)
	r14, err := admin.AlterClientQuotas(ctx, limit(1e6, false))
	ask("AlterClientQuotas", r14, err)
	r15, err := admin.ValidateAlterClientQuotas(ctx, wrong)
	ask("ValidateAlterClientQuotas", r15, err)
	r16, err := admin.DescribeClientQuotas(ctx, true, ours)
	ask("DescribeClientQuotas", r16, err)
	r17, err := admin.AlterClientQuotas(ctx, limit(0, true))
	ask("AlterClientQuotas, removed", r17, err)
	r18, err := admin.CommitOffsets(ctx, group, offsets(0))
	ask("CommitOffsets", r18, err)
	r19, err := admin.FetchOffsets(ctx, group)
	ask("FetchOffsets", r19, err)
	ask("FetchManyOffsets", admin.FetchManyOffsets(ctx, group, nobody), nil)
	r20, err := admin.DescribeGroups(ctx, group, nobody)
	ask("DescribeGroups", r20, err)
	r21, err := admin.Lag(ctx, group)
	ask("Lag", r21, err)
	r22, err := admin.LeaveGroup(ctx, kadm.LeaveGroup(group).InstanceIDs("nobody"))
	ask("LeaveGroup", r22, err)
	r23, err := admin.DeleteOffsets(ctx, group, there)
	ask("DeleteOffsets", r23, err)
	r24, err := admin.DeleteGroups(ctx, group, nobody)
	ask("DeleteGroups", r24, err)
	ask("FindGroupCoordinators", admin.FindGroupCoordinators(ctx, group), nil)
	for call, list := range map[string]func(context.Context, ...string) (kadm.ListedOffsets, error){
		"ListStartOffsets": admin.ListStartOffsets, "ListEndOffsets": admin.ListEndOffsets,
		"ListMaxTimestampOffsets": admin.ListMaxTimestampOffsets, "ListCommittedOffsets": admin.ListCommittedOffsets,
		"ListLocalLogStartOffsets": admin.ListLocalLogStartOffsets,
	} {
		listed, err := list(ctx, topic)
		ask(call, listed, err)
	}
	r25, err := admin.OffsetForLeaderEpoch(ctx, epochs)
	ask("OffsetForLeaderEpoch", r25, err)
	r26, err := admin.DeleteRecords(ctx, offsets(5))
	ask("DeleteRecords", r26, err)
	r27, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, there)
	ask("ElectLeaders", r27, err)
	r28, err := admin.ElectLeaders(ctx, kadm.ElectLiveReplica, elsewhere)
	ask("ElectLeaders, unclean", r28, err)
	r29, err := admin.AlterPartitionAssignments(ctx, assigned(topic, []int32{0}))
	ask("AlterPartitionAssignments", r29, err)
	r30, err := admin.AlterPartitionAssignments(ctx, assigned(missing, []int32{0}))
	ask("AlterPartitionAssignments of none", r30, err)
	r31, err := admin.AlterPartitionAssignments(ctx, assigned(topic, []int32{7, 8}))
	ask("AlterPartitionAssignments to nobody", r31, err)
	r32, err := admin.ListPartitionReassignments(ctx, there)
	ask("ListPartitionReassignments", r32, err)
	r33, err := admin.DescribeAllLogDirs(ctx, there)
	ask("DescribeAllLogDirs", r33, err)
	r34, err := admin.AlterAllReplicaLogDirs(ctx, directory)
	ask("AlterAllReplicaLogDirs", r34, err)
	r35, err := admin.DescribeProducers(ctx, there)
	ask("DescribeProducers", r35, err)
	r36, err := admin.ListTransactions(ctx, nil, nil)
	ask("ListTransactions", r36, err)
	r37, err := admin.DescribeUserSCRAMs(ctx)
	ask("DescribeUserSCRAMs", r37, err)
	r38, err := admin.UpdateFeatures(ctx, true, kadm.FeatureUpdate{Feature: "nosuch", MaxVersionLevel: 1})
	ask("UpdateFeatures", r38, err)
	r39, err := admin.DescribeConsumerGroups(ctx, group)
	ask("DescribeConsumerGroups", r39, err)
	r40, err := admin.ListConfigResources(ctx)
	ask("ListConfigResources", r40, err)
	r41, err := admin.DeleteTopics(ctx, topic, missing)
	ask("DeleteTopics", r41, err)
	return story
}

// Kafka's own errors by name; others by their kind alone.
func told_error(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	if err != nil {
		return fmt.Sprintf("%T", err)
	}
	return ""
}

func writeStory(story []told) error {
	text, err := json.Marshal(story)
	if err == nil {
		fmt.Println(string(text))
	}
	return err
}
