// The settings by which a central would answer from another place than the others at its store.

export const refusedKeys = [
  "base_url",
  "objects.s3.bucket",
  "objects.s3.endpoint",
  "objects.s3.prefix",
  "request_logs.url",
] as const;
export type RefusedKey = (typeof refusedKeys)[number];

export const isRefusedKey = (key: string): key is RefusedKey =>
  refusedKeys.some((one) => one === key);
