import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { full } from '@roofline/tensor-core';
import { initProcessGroup } from '@roofline/collectives';

// A rank that would outlive its launcher by a minute, in the state that the argument names.

const [state] = process.argv.slice(2);
const soon = 60_000;
const noWord = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;

if (state === 'waits') {
  for (const signal of noWord) process.on(signal, () => {});
  console.log('ready');
  await sleep(soon);
} else if (state === 'spins') {
  console.log('ready');
  for (const until = Date.now() + soon; Date.now() < until;);
} else if (state === 'is blocked in native code') {
  const group = await initProcessGroup({ backend: 'gloo', timeoutMs: soon });
  console.log('ready');
  // The last one does not come.
  if (group.rank === group.size - 1) for (const until = Date.now() + soon; Date.now() < until;);
  group.allReduce(full([1000], 1)).wait();
} else if (state === 'has started another program') {
  // A shell that takes no notice of signals, and what it has started in turn.
  const shell = spawn('sh', ['-c', 'trap "" TERM HUP INT; echo ready; sleep 60; echo'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  await new Promise((resolve) => shell.once('exit', resolve));
} else if (state === 'has forked itself') {
  const { fork } = await import('node:child_process');
  fork(process.argv[1]!, ['waits']);
  await sleep(soon);
} else if (state === 'launches ranks of its own') {
  const { launch } = await import('@roofline/collectives');
  await launch({ processes: 2, script: process.argv[1]!, args: ['spins'] });
}
