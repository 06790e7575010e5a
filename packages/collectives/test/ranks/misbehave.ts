import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { initProcessGroup } from '@roofline/collectives';

// What a launcher has to deal with: named by the first argument, on the rank named by the second.

const [fault, victim] = process.argv.slice(2);
const isVictim = process.env.RANK === victim;

if (fault === 'variables') {
  const { RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, CUDA_VISIBLE_DEVICES } = process.env;
  console.log([RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, CUDA_VISIBLE_DEVICES].join('|'));
  console.error('and on stderr');
} else if (fault === 'throws') {
  const group = await initProcessGroup({ backend: 'gloo' });
  if (isVictim) throw new RangeError('the first fault');
  group.barrier().wait();
} else if (fault === 'ignores') {
  process.on('SIGTERM', () => {});
  console.log('ready');
  if (isVictim) await sleep(300);
  if (isVictim) process.exit(3);
  await sleep(60_000);
} else if (fault === 'leaves a child') {
  if (!isVictim) await sleep(60_000);
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { stdio: 'inherit' });
  console.error(`child ${child.pid}`);
  setTimeout(() => process.exit(4), 50);
} else if (fault === 'waits') {
  process.on('SIGTERM', () => process.exit(0));
  console.log(process.pid);
  await sleep(60_000);
} else if (fault === 'chatters') {
  for (let line = 0; line < 50; line++) {
    console.log(line);
    await sleep(10);
  }
  console.error('at its end');
} else if (fault === 'counts signals') {
  let count = 0;
  process.on('SIGINT', () => {
    if (++count === 1) setTimeout(() => process.exit(count - 1), 500);
  });
  console.log('ready');
  await sleep(60_000);
} else if (fault === 'signals') {
  process.on('SIGINT', () => {
    console.log('got SIGINT');
    process.exit(0);
  });
  console.log('ready');
  await sleep(60_000);
}
