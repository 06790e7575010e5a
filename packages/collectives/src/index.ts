export { CollectiveError, type CollectiveErrorDetails, StoreError } from './errors.ts';
export type { Reduction, TimeSpan } from './group/backend.ts';
export { type InitProcessGroupOptions, initProcessGroup } from './group/init-process-group.ts';
export { type BackendDiagnosis, diagnoseGloo } from './gloo/diagnose-gloo.ts';
export { runLaunchCommand } from './launch/launch-command.ts';
export { launch, type LaunchResult } from './launch/launch.ts';
export type { LaunchOptions } from './launch/launch-options.ts';
export type { RankFailure } from './launch/rank-process.ts';
export type { ReduceOptions } from './group/collective-checks.ts';
export { makeSymmetric } from './group/make-symmetric.ts';
export type { ProcessGroup } from './group/process-group.ts';
export { observeWorks, type Work } from './group/work.ts';
export {
  type DataParallelMode,
  type DistributedDataParallelOptions,
  type ReplicatedModel,
  defaultBucketBytes,
} from './parallel/data-parallel-arguments.ts';
export { DistributedDataParallel } from './parallel/distributed-data-parallel.ts';
export type { AttentionPart, AttentionParts } from './parallel/context/attention-parts.ts';
export {
  type ContextModel,
  type ContextParallel,
  type ContextParallelOptions,
  contextParallel,
} from './parallel/context/context-parallel.ts';
export { type FullySharded, type RanksOfShards, fullyShard } from './parallel/fully-sharded.ts';
export { Mesh } from './parallel/mesh.ts';
export type { StateOptions } from './parallel/save-and-load-state.ts';
export type { ShardableModule } from './parallel/sharded/parameter-unit.ts';
export type { ShardedParameter } from './parallel/sharded/sharded-unit.ts';
export type { FullyShardOptions } from './parallel/sharded/sharding-options.ts';
export type { ShardableState } from './parallel/shard-states.ts';
export type {
  OptimizerClass,
  ShardableGroup,
  ShardableOptimizer,
  ShardableParameters,
} from './parallel/shardable-optimizer.ts';
export { ShardedOptimizer, type ShardedOptimizerOptions } from './parallel/sharded-optimizer.ts';
export type { DividableModel, DividableModule } from './parallel/tensor/dividable-model.ts';
export { parallelize } from './parallel/tensor/parallelize.ts';
export type {
  DividedParameter,
  RanksOfDivisions,
  TensorParallel,
} from './parallel/tensor/tensor-parallel.ts';
export { type ReductionOptions, allReduce } from './ops/all-reduce.ts';
export { allToAll } from './ops/all-to-all.ts';
export { shift } from './ops/shift.ts';
export { broadcast, reduce } from './ops/broadcast.ts';
export { allGather, reduceScatter } from './ops/gather-scatter.ts';
export { receive, send } from './ops/send-receive.ts';
export { type RankEnvironment, type RankOptions, rankEnvironment } from './ranks/rank-environment.ts';
export { StoreClient, type StoreClientOptions } from './store/store-client.ts';
export { StoreServer, type StoreServerOptions } from './store/store-server.ts';
export type { Store, StoreWaitOptions } from './store/store.ts';
