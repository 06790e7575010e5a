import { expect, it } from 'vitest';
import { z } from 'zod';
import { parameter } from '../../src/parameters/parameter.ts';
import { environmentFacts } from '../../src/report/environment-facts.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyRecord } from '../fixtures/records.ts';

it('describes the environment in words and units', () => {
  const properties = {
    memoryMiB: 143156,
    l2MiB: 60,
    maxClockMHz: 1980,
    computeCapability: '9.0',
    newerFact: 3,
    constructor: 'as many objects have',
  };
  const device = { label: 'cuda:0', type: 'cuda' as const, name: 'H200', properties };
  const environment = { ...toyEnvironment, device };
  const facts = environmentFacts(
    toyRecord({}, { environment, settings: { lossSteps: 200, bucketBytes: 26214400, peer: null } }),
  );
  const said = environmentFacts(toyRecord({}, { settings: { rounds: 3 } }), {
    rounds: parameter(z.int(), { title: 'Turns of each side' }),
  });
  expect(said).toContainEqual({ label: 'Turns of each side', value: '3' });
  const told = Object.fromEntries(facts.map(({ label, value }) => [label, value]));
  expect(told).toMatchObject({
    'Device memory': '140 GiB',
    'L2 cache': '60.0 MiB',
    'Highest clock': '1980 MHz',
    'Compute capability': '9.0',
    'Newer fact': '3',
    Constructor: 'as many objects have',
    'Loss steps': '200',
    'Bucket bytes': '25.0 MiB',
    Peer: 'none',
  });
  expect(facts.filter(({ label }) => /[a-z][A-Z](?!B)/.test(label) && !label.startsWith('@'))).toEqual([]);
});
