import type { Column } from '@roofline/reports';

/** The time that is compared: the median of the samples. */
export const medianColumn: Column = {
  key: 'medianMs',
  label: 'Median',
  unit: 'ms',
  kind: 'duration',
  emphasis: 'strong',
};

/** The columns that compare a measured time with the ceilings. */
export const roofColumns: readonly Column[] = [
  {
    key: 'floorMs',
    label: 'Floor',
    unit: 'ms',
    kind: 'duration',
    detail: true,
    description: 'The least time that the measured ceilings of this device allow for this work.',
  },
  {
    key: 'roofShare',
    label: 'Of the roof',
    kind: 'percent',
    emphasis: 'roof',
    description: 'Floor over median: at 100 % the work runs as fast as the measured ceilings allow.',
  },
];
