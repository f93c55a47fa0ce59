// A bucket over a server of S3 in this process, behind a proxy that fails as it is told.

import type { BucketFailure, BucketPlace } from "../../src/central/store/objects/bucket-place.ts";
import {
  Bucket,
  bucketLimits,
  type BucketCall,
  type BucketLimits,
} from "../../src/central/store/objects/bucket.ts";
import { startS3Faults } from "./s3-faults.ts";
import { s3Key, startS3Server } from "./s3-server.ts";

export const bucketName = "accel-test";
export const prefix = "central/";

/** Attempts follow each other at once. */
export const quickLimits: BucketLimits = {
  ...bucketLimits,
  backoff: { firstMs: 1, mostMs: 2 },
};

/** For what never answers. */
export const impatientLimits: BucketLimits = { ...quickLimits, answerMs: 150, idleMs: 150 };

export type BucketRig = Awaited<ReturnType<typeof startBucketRig>>;

export async function startBucketRig(
  options: {
    readonly limits?: BucketLimits;
    readonly place?: Partial<BucketPlace>;
    readonly mayDelete?: boolean;
  } = {},
) {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(
    await startS3Server(bucketName, { mayDelete: options.mayDelete ?? true }),
  );
  const faults = stack.use(await startS3Faults(server.port));
  const calls: { readonly call: BucketCall; readonly failure: BucketFailure | undefined }[] = [];
  const stop = new AbortController();
  const place: BucketPlace = {
    bucket: bucketName,
    prefix,
    endpoint: `http://127.0.0.1:${faults.port}`,
    region: s3Key.region,
    pathStyle: true,
    ca: undefined,
    accessKey: () => s3Key,
    ...options.place,
  };
  const bucket = stack.use(
    new Bucket({
      place,
      limits: options.limits ?? quickLimits,
      onCall: (call, failure) => calls.push({ call, failure }),
      random: () => 0.5,
      stop: stop.signal,
    }),
  );
  const owned = stack.move();
  return {
    server,
    faults,
    bucket,
    place,
    calls,
    stop,
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}
