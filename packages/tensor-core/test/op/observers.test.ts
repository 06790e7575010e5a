import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { observers } from '../../src/op/observers.ts';
import { devices } from '../lifetimes/devices.ts';

describe('observers', () => {
  it('are all notified of ops, host reads, host writes and copies between devices', () => {
    const other = devices.at(-1)![1];
    t.scope(() => {
      const told: string[][] = [[], []];
      const stops = told.map((list) =>
        t.observeOps({
          before: ({ name }) => void list.push(`before ${name}`),
          after: ({ name }, failed) => void list.push(`after ${name} ${failed}`),
          hostRead: ({ shape }) => void list.push(`read ${shape}`),
          hostWrite: ({ shape }) => void list.push(`write ${shape}`),
          deviceCopy: (from, to) => void list.push(`copy ${from.device.label} to ${to.device.label}`),
        }),
      );
      const x = t.tensor([1, 2]);
      t.exp(x).toTypedArray();
      if (other !== x.device) x.to(other);
      for (const stop of stops) stop();
      t.exp(x);
      const copied = other === x.device ? [] : [`copy cpu to ${other.label}`];
      expect(told[0]).toEqual(['write 2', 'before exp', 'after exp false', 'read 2', ...copied]);
      expect(told[1]).toEqual(told[0]);
      expect(observers).toHaveLength(0);
    });
  });

  it('are ended one by one, even if one of them is ended twice', () => {
    t.scope(() => {
      let calls = 0;
      const observer = { after: () => void calls++ };
      const [first, second] = [t.observeOps(observer), t.observeOps(observer)];
      first();
      first();
      t.exp(t.tensor([1]));
      second();
      expect(calls).toBe(1);
    });
  });

  it('are notified when an op throws, and may leave while being notified', () => {
    t.scope(() => {
      const told: string[] = [];
      const stop = t.observeOps({
        after: ({ name }, failed) => {
          told.push(`${name} ${failed}`);
          stop();
        },
      });
      const failing = t.defineOp({
        name: 'failing',
        autocast: 'none',
        infer: ([x]) => [x!],
        cuda: { kind: 'pointwise', expressions: () => ['a'] },
        cpu: {
          kind: 'host',
          run() {
            throw new Error('stop');
          },
        },
      });
      expect(() => t.applyOne(failing, [t.ones([1])], undefined)).toThrow('stop');
      expect(told).toEqual(['fill_ false']);
      stop();
    });
  });

  it('are notified of an end for each beginning, whatever another observer throws', () => {
    t.scope(() => {
      const x = t.ones([1]);
      for (const throwing of ['before', 'after'] as const) {
        const told: string[] = [];
        const watch = (name: string): t.Observer => ({
          before: () => void told.push(`${name} before`),
          after: () => void told.push(`${name} after`),
        });
        const fail = () => {
          throw new Error('stop');
        };
        const stops = [watch('first'), { [throwing]: fail }, watch('second')].map(t.observeOps);
        try {
          expect(() => t.exp(x)).toThrow('stop');
        } finally {
          for (const stop of stops) stop();
        }
        const second = throwing === 'before' ? [] : ['second'];
        const each = ['first', ...second];
        expect(told).toEqual([
          ...each.map((name) => `${name} before`),
          ...each.map((name) => `${name} after`),
        ]);
      }
    });
  });

  it('are not notified of the end of an op that began before they came', () => {
    t.scope(() => {
      const x = t.ones([1]);
      const told: string[] = [];
      const stops: (() => void)[] = [];
      const late = { after: () => void told.push('late') };
      stops.push(t.observeOps({ before: () => void stops.push(t.observeOps(late)) }));
      t.exp(x);
      for (const stop of stops) stop();
      expect(told).toEqual([]);
    });
  });
});

describe('range', () => {
  it('closes all ranges when a listener throws, on entering or on leaving', () => {
    for (const when of ['enter', 'exit'] as const) {
      const told: string[] = [];
      const stop = t.onRange({
        enter: (name) => {
          told.push(`enter ${name}`);
          if (when === 'enter' && name === 'inner') throw new Error('stop');
        },
        exit: (name) => {
          told.push(`exit ${name}`);
          if (when === 'exit' && name === 'inner') throw new Error('stop');
        },
      });
      try {
        expect(() => t.range('outer', () => t.range('inner', () => 1))).toThrow('stop');
      } finally {
        stop();
      }
      expect(t.currentRange()).toEqual([]);
      expect(told.at(-1)).toBe('exit outer');
    }
  });

  it('closes the ranges of other listeners too when one throws', () => {
    for (const throwing of ['enter', 'exit'] as const) {
      const told: string[] = [];
      const fail = () => {
        throw new Error('stop');
      };
      const watch = {
        enter: (name: string) => void told.push(`enter ${name}`),
        exit: (name: string) => void told.push(`exit ${name}`),
      };
      const stops = [watch, { enter() {}, exit() {}, [throwing]: fail }, { ...watch }].map(t.onRange);
      try {
        expect(() => t.range('only', () => 1)).toThrow('stop');
      } finally {
        for (const stop of stops) stop();
      }
      const listening = throwing === 'enter' ? 1 : 2;
      expect(told.filter((line) => line === 'enter only')).toHaveLength(listening);
      expect(told.filter((line) => line === 'exit only')).toHaveLength(listening);
    }
  });
});
