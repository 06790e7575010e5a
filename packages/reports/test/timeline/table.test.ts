import { describe, expect, it } from 'vitest';
import { ReportError, renderHtml, renderMarkdown, timelineTable } from '../../src/index.ts';
import { sampleReport } from '../fixtures.ts';
import { longTimeline, smallTimeline } from '../chart-fixtures.ts';

describe('timelineTable', () => {
  it('adds up the slices of one name and track, the longest total first', () => {
    const slice = { name: 'gemm', durationUs: 2000 };
    const table = timelineTable(
      smallTimeline({
        tracks: [
          { name: 'Stream 7', slices: [{ name: 'copy', startUs: 0, durationUs: 500 }] },
          {
            name: 'Stream 8',
            slices: [
              { ...slice, startUs: 0 },
              { ...slice, startUs: 9000, durationUs: 4000 },
            ],
          },
        ],
      }),
    );
    expect(table.rows).toEqual([
      { track: 'Stream 8', name: 'gemm', count: 2, totalMs: 6, meanMs: 3, longestMs: 4 },
      { track: 'Stream 7', name: 'copy', count: 1, totalMs: 0.5, meanMs: 0.5, longestMs: 0.5 },
    ]);
  });

  it('says how many names it leaves out', () => {
    const table = timelineTable(longTimeline(100));
    expect(table.rows).toHaveLength(40);
    expect(table.caption).toBe('The 40 of 50 names that took most time.');
  });

  it('represents the timeline in Markdown', () => {
    const sections = [{ id: 's', title: 'S', blocks: [smallTimeline()] }];
    expect(renderMarkdown(sampleReport({ sections }))).toMatch(
      /### One step\n\n\| Track.*\n.*\n\| Ranges +\| backward/,
    );
  });

  it.each([
    [{ startUs: NaN }, /timeline 'step-timeline', track 'T', slice 'a': startUs is NaN/],
    [{ durationUs: -1 }, /slice 'a': durationUs is -1/],
    [{ depth: 0.5 }, /slice 'a': depth is 0.5/],
  ])('refuses %j', (change, message) => {
    const slice = { name: 'a', startUs: 0, durationUs: 1, ...change };
    const timeline = smallTimeline({ tracks: [{ name: 'T', slices: [slice] }] });
    expect(() => timelineTable(timeline)).toThrow(ReportError);
    expect(() => timelineTable(timeline)).toThrow(message);
    const sections = [{ id: 's', title: 'S', blocks: [timeline] }];
    expect(() => renderHtml(sampleReport({ sections }))).toThrow(message);
  });

  it('refuses counters that go back in time', () => {
    const counters = [
      {
        name: 'c',
        unit: 'W',
        points: [
          [2, 0],
          [1, 0],
        ] as [number, number][],
      },
    ];
    expect(() => timelineTable(smallTimeline({ counters }))).toThrow(
      /counter 'c', point 1: goes back in time/,
    );
  });
});
