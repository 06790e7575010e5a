// Is alone in a process: its calls write variables of the environment.
import { SGD } from '@roofline/optim';
import { RooflineError, ones, zeros } from '@roofline/tensor-core';
import { TransformerLM } from '@roofline/transformer';
import { expect, it } from 'vitest';
import {
  type HostileTable,
  describeHostileArguments,
  describeHostileMethods,
  exempt,
} from '../../../tooling/hostile-arguments.ts';
import { ProcessGroup } from '../src/group/process-group.ts';
import { Work } from '../src/group/work.ts';
import * as collectives from '../src/index.ts';
import { hasGloo, rankScript } from './support/run-ranks.ts';
import { InstantBackend, groupOn } from './support/instant-backend.ts';

const server = await collectives.StoreServer.listen({ token: '' });
const place = { host: '127.0.0.1', port: server.port, token: '', timeoutMs: 300 };
const client = await collectives.StoreClient.connect(place);
await client.set('key', 'value');
await client.set('number', '1');
const anError = exempt('an error: its message is whatever it is given');
const anyText = 'a';

const group = () => groupOn(new InstantBackend());
const named = () => [['weight', ones([2]).requiresGrad_()] as const];
const model = () => ({ namedParameters: named });
const parallel = () => new collectives.DistributedDataParallel(model(), group());
/** What both ranks give is what this one does. */
const echo = () =>
  Object.assign(group(), { allGatherObject: (value: unknown) => Promise.resolve([value, value]) });
const sharded = () => new collectives.ShardedOptimizer([ones([2])], SGD, echo(), { momentum: 0.5 });
const state = () => ({ tensors: {}, metadata: { optimizer: 'SGD' } });

/** The method, where the key 'a' holds a text: others set it and delete it. */
function besideText(method: 'get' | 'add') {
  return async (store: collectives.StoreClient, ...args: unknown[]) => {
    await client.set(anyText, 'text');
    return await (store[method] as (...args: unknown[]) => Promise<unknown>)(...args);
  };
}

const mesh = await collectives.Mesh.create(group(), { shard: 2 });
const shardOptions = [
  ...['computeDtype', 'reduceDtype', 'reshardAfterForward', 'prefetch', 'findUnusedParameters'],
];
/** A module of one child, which has a weight. */
const child = () => {
  const parameters = named();
  const layer = {
    forward() {},
    namedParameters: () => parameters,
    *children() {},
    *namedModules() {},
  };
  return {
    ...layer,
    *children() {
      yield ['layer', layer] as const;
    },
  };
};

const reductionOptions = { '2': 'undefined {}', '2.op': 'undefined' };

const table: HostileTable = {
  'new DistributedDataParallel': {
    args: () => [model(), group(), { mode: 'flat', bucketBytes: 5, findUnusedParameters: true }],
    whole: [0],
    legal: {
      '2': 'undefined {}',
      '2.mode': 'undefined',
      '2.bucketBytes': 'undefined 5',
      '2.findUnusedParameters': 'undefined',
    },
  },
  'DistributedDataParallel#noSync': { args: () => [parallel(), () => {}], legal: { 1: 'fn' } },
  'DistributedDataParallel#step=': { args: () => [parallel(), 3], legal: { 1: 'null 5' } },
  'DistributedDataParallel#dispose': exempt('takes nothing'),
  'new ShardedOptimizer': {
    args: () => [[ones([2])], SGD, group(), { learningRate: 0.1 }, { bucketBytes: 5 }],
    named: 'ShardedOptimizer|SGD',
    legal: {
      ...{ '3': 'undefined {}', '3.learningRate': 'undefined 5' },
      ...{ '4': 'undefined {}', '4.bucketBytes': 'undefined 5' },
    },
  },
  'ShardedOptimizer#learningRate=': {
    args: () => [sharded(), 0.1],
    named: 'SGD',
    legal: { 1: '5' },
  },
  'ShardedOptimizer#stateDict': {
    args: () => [sharded(), { root: 0 }],
    legal: { '1': 'undefined {}', '1.root': 'undefined' },
  },
  'ShardedOptimizer#loadStateDict': {
    args: () => [sharded(), state(), { root: 0 }],
    named: 'ShardedOptimizer.loadStateDict|SGD.loadStateDict',
    whole: [1],
    legal: { '2': 'undefined {}', '2.root': 'undefined' },
  },
  'ShardedOptimizer#parameters': exempt('takes nothing'),
  'ShardedOptimizer#ownParameters': exempt('takes nothing'),
  'ShardedOptimizer#zeroGrad': exempt('takes nothing'),
  'ShardedOptimizer#stepUnless': { args: () => [sharded(), zeros([])], named: 'ShardedOptimizer|SGD' },
  'ShardedOptimizer#step': exempt('takes nothing'),
  'ShardedOptimizer#dispose': exempt('takes nothing'),
  fullyShard: {
    args: () => [
      child(),
      group(),
      {
        ...{ computeDtype: 'bfloat16', reduceDtype: 'float32', reshardAfterForward: true },
        ...{ prefetch: true, findUnusedParameters: true },
      },
    ],
    whole: [0],
    legal: {
      '2': 'undefined {}',
      ...Object.fromEntries(shardOptions.map((name) => [`2.${name}`, 'undefined'])),
    },
  },
  parallelize: {
    args: () => [
      new TransformerLM({
        ...{ vocabularySize: 2, contextLength: 2, modelDimension: 4, feedForwardDimension: 2 },
        ...{ layers: 1, heads: 2 },
      }),
      group(),
    ],
    whole: [0],
  },
  contextParallel: {
    args: () => [group(), { parts: { forward: () => ones([2]), backward: () => ones([2]) } }],
    legal: { '1': 'undefined {}', '1.parts': 'undefined' },
  },
  makeSymmetric: { args: () => [group(), [ones([2])]], legal: { '1': '[]' } },
  defaultBucketBytes: { args: () => [1e9], legal: { '0': '5' } },
  'new Mesh': exempt('private: create() makes it'),
  'Mesh.create': { args: () => [group(), { replicate: 1, shard: 2 }] },
  'Mesh#along': { args: () => [mesh, 'shard'], named: 'Mesh.along' },
  'Mesh#has': exempt('asks: whatever is no axis is none'),
  'Mesh#dispose': exempt('takes nothing'),
  allReduce: { args: () => [ones([2]), group(), { op: 'max' }], legal: reductionOptions },
  allGather: { args: () => [ones([2]), group()] },
  reduceScatter: { args: () => [ones([2]), group(), { op: 'max' }], legal: reductionOptions },
  allToAll: { args: () => [ones([2]), group()] },
  shift: { args: () => [ones([2]), 1, group()], legal: { '1': '5' } },
  broadcast: { args: () => [ones([2]), 0, group()] },
  reduce: {
    args: () => [ones([2]), 0, group(), { op: 'max' }],
    legal: { '3': 'undefined {}', '3.op': 'undefined' },
  },
  send: { args: () => [ones([2]), 1, group()] },
  receive: { args: () => [ones([2]), 1, group()] },
  'new CollectiveError': anError,
  'new StoreError': anError,
  'new StoreClient': exempt('private: connect() makes it'),
  'new StoreServer': exempt('private: listen() makes it'),
  observeWorks: {
    args: () => [() => {}],
    call: (fn: () => void) => collectives.observeWorks(fn)(),
    legal: { '0': 'fn' },
  },
  initProcessGroup: hasGloo
    ? {
        args: () => [
          {
            backend: 'gloo',
            rank: 0,
            localRank: 0,
            masterAddress: '127.0.0.1',
            token: '',
            host: '127.0.0.1',
            device: 'cpu',
            checkCalls: false,
          },
        ],
        call: async (options: collectives.InitProcessGroupOptions) => {
          Object.assign(process.env, { RANK: '0', WORLD_SIZE: '1', MASTER_PORT: String(server.port + 1) });
          (await collectives.initProcessGroup(options)).dispose();
        },
        named: 'initProcessGroup|rankEnvironment|gloo: cannot listen',
        legal: {
          '0.rank': 'undefined',
          '0.localRank': 'undefined 5',
          '0.token': `undefined ${anyText}`,
          '0.host': 'undefined',
          '0.device': 'undefined',
          '0.checkCalls': 'undefined',
        },
      }
    : exempt('without Gloo there is one error for all'),
  launch: {
    args: () => [
      {
        processes: 1,
        script: rankScript('idle'),
        args: [],
        nodes: 1,
        nodeRank: 0,
        graceMs: 0,
        token: 't',
        write: () => {},
      },
    ],
    legal: {
      '0.processes': '5',
      '0.args': 'undefined []',
      '0.nodes': 'undefined',
      '0.nodeRank': 'undefined',
      '0.graceMs': 'undefined 5',
      '0.token': `undefined ${anyText}`,
      '0.write': 'undefined fn',
    },
  },
  runLaunchCommand: exempt('the words of a command line; test/launch runs it'),
  diagnoseGloo: exempt('takes nothing'),
  rankEnvironment: {
    args: () => [
      { rank: 0, worldSize: 9, localRank: 0, masterAddress: 'h', masterPort: 1, token: '' },
      { RANK: '1', WORLD_SIZE: '2', LOCAL_RANK: '1', MASTER_ADDR: 'h', MASTER_PORT: '3' },
    ],
    whole: [1],
    legal: {
      '0': 'undefined {}',
      '0.rank': 'undefined 5',
      '0.worldSize': 'undefined 5',
      '0.localRank': 'undefined 5',
      '0.masterAddress': `undefined ${anyText}`,
      '0.masterPort': 'undefined 5',
      '0.token': `undefined ${anyText}`,
      '1': 'undefined {} option duck',
    },
  },
  'StoreClient.connect': {
    args: () => [place],
    call: async (options: collectives.StoreClientOptions) => {
      // Five milliseconds are a legal time, but not always enough.
      const isHasty = options?.timeoutMs === 5;
      (await collectives.StoreClient.connect(isHasty ? { ...options, timeoutMs: 5000 } : options)).close();
    },
    legal: { '0.timeoutMs': 'undefined 5' },
  },
  'StoreClient#set': { args: () => [client, 'key', 'value'], legal: { 1: anyText, 2: anyText } },
  'StoreClient#get': {
    args: () => [client, 'key', { timeoutMs: 50 }],
    call: besideText('get'),
    legal: { 1: anyText, 2: 'undefined {}', '2.timeoutMs': 'undefined 5' },
  },
  'StoreClient#wait': {
    args: () => [client, ['key'], { timeoutMs: 50 }],
    legal: { 1: '[]', 2: 'undefined {}', '2.timeoutMs': 'undefined 5' },
  },
  'StoreClient#add': { args: () => [client, 'number', 1], call: besideText('add'), legal: { 2: '5' } },
  'StoreClient#compareAndSet': {
    args: () => [client, 'key', 'before', 'after'],
    legal: { 1: anyText, 2: `null ${anyText}`, 3: anyText },
  },
  'StoreClient#setOnceGone': {
    args: () => [client, 'left', 'value'],
    legal: { 1: anyText, 2: anyText },
  },
  'StoreClient#deletePrefix': { args: () => [client, 'nothing'], legal: { 1: 'a' } },
  'StoreClient#close': exempt('takes nothing'),
  'StoreServer.listen': {
    args: () => [
      {
        host: '127.0.0.1',
        port: 0,
        token: '',
        helloTimeoutMs: 9,
        strangers: 9,
        messageBytes: 9,
        storedBytes: 9,
      },
    ],
    call: async (options: collectives.StoreServerOptions) => {
      // Port 5 is root's alone.
      const port = options?.port === 5 ? 0 : options?.port;
      const isObject = Object.prototype.toString.call(options) === '[object Object]';
      (await collectives.StoreServer.listen(isObject ? { ...options, port } : options)).close();
    },
    legal: {
      '0.port': 'undefined 5',
      '0.host': 'undefined',
      '0.token': anyText,
      '0.helloTimeoutMs': 'undefined 5',
      '0.strangers': 'undefined 5',
      '0.messageBytes': 'undefined 5',
      '0.storedBytes': 'undefined 5',
    },
  },
  'StoreServer#close': exempt('takes nothing'),
};

describeHostileArguments(collectives, table, RooflineError);
const reduceOptions = () => ({ op: 'max', output: zeros([2]), context: 'step 3' });
const legalReduce = {
  ...{ '2': 'undefined {}', '2.op': 'undefined', '2.output': 'undefined' },
  '2.context': `undefined ${anyText}`,
};

const methods: HostileTable = {
  'ProcessGroup#allReduce': {
    args: () => [group(), ones([2]), reduceOptions()],
    legal: legalReduce,
  },
  'ProcessGroup#reduce': {
    args: () => [group(), ones([2]), 0, reduceOptions()],
    legal: {
      ...{ '3': 'undefined {}', '3.op': 'undefined', '3.output': 'undefined' },
      '3.context': `undefined ${anyText}`,
    },
  },
  'ProcessGroup#broadcast': { args: () => [group(), ones([2]), 0] },
  'ProcessGroup#allGather': { args: () => [group(), zeros([4]), ones([2])] },
  'ProcessGroup#reduceScatter': {
    args: () => [group(), zeros([2]), ones([4]), { op: 'min' }],
    legal: { '3': 'undefined {}', '3.op': 'undefined' },
  },
  'ProcessGroup#allToAll': { args: () => [group(), zeros([4]), ones([4])] },
  'ProcessGroup#gather': { args: () => [group(), zeros([4]), ones([2]), 0] },
  'ProcessGroup#scatter': { args: () => [group(), zeros([2]), ones([4]), 0] },
  'ProcessGroup#send': { args: () => [group(), ones([2]), 1] },
  'ProcessGroup#recv': { args: () => [group(), ones([2]), 1] },
  'ProcessGroup#barrier': exempt('takes nothing'),
  'ProcessGroup#allGatherObject': exempt('takes any value; the collectives of test/ranks run it'),
  'ProcessGroup#onCurrentStream': { args: () => [group(), () => {}], legal: { 1: 'fn' } },
  'ProcessGroup#coalesce': { args: () => [group(), () => {}], legal: { 1: 'fn' } },
  'ProcessGroup#subGroup': { args: () => [group(), [0, 1]] },
  'ProcessGroup#dispose': exempt('takes nothing'),
  'Work#wait': exempt('takes nothing'),
};

describeHostileMethods({ ProcessGroup, Work }, methods, RooflineError);

it('allGatherObject refuses what cannot be cloned', async () => {
  await expect(group().allGatherObject(() => {})).rejects.toThrow(/allGatherObject: the value cannot travel/);
});
