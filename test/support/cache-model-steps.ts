// What may happen in a walk of the model check, and how often.

/** How often each step is taken, of the sum of all. */
export const stepWeights = {
  fill: 14,
  code: 6,
  startFetch: 14,
  readSource: 14,
  finishFetch: 14,
  lookUp: 16,
  quick: 20,
  hold: 6,
  send: 6,
  startRefresh: 3,
  startVariant: 6,
  finishRevision: 7,
  clear: 3,
  soften: 2,
  order: 3,
  unlink: 0.4,
  invalidate: 1.5,
  activate: 0.5,
  receipt: 4,
  note: 1,
  deliver: 25,
  turn: 14,
  rush: 8,
  matchRead: 7,
  matchAnswer: 7,
  matchFail: 0.15,
  deadlines: 0.1,
  copy: 0.4,
  kill: 0.3,
  powerLoss: 0.4,
  stop: 0.1,
  replaceThread: 0.25,
  putBack: 0.2,
  drop: 0.05,
} as const;
export type StepName = keyof typeof stepWeights;
export type Weights = Partial<Record<StepName, number>>;
export type Step = readonly [name: StepName, a: number, b: number, c: number];
