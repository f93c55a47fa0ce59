// Where a bucket is, and what a failure of it means.

import { AccelError, codeOf, messageOf } from "../../../core/faults.ts";

export type AccessKey = { readonly id: string; readonly secret: string };

export type BucketPlace = {
  readonly bucket: string;
  /** Ends in a slash. */
  readonly prefix: string;
  /** Undefined: Amazon's of the region. */
  readonly endpoint: string | undefined;
  readonly region: string;
  /** Whether the bucket stands in the path of URLs. */
  readonly pathStyle: boolean;
  /** PEM; undefined: the public authorities. */
  readonly ca: string | undefined;
  /** Asked again every few minutes. Throws FILE_UNUSABLE. Undefined: the SDK looks at its usual places. */
  readonly accessKey: (() => AccessKey) | undefined;
};

/** Names the place in messages; it holds no secret. */
export function bucketText({ bucket, prefix, endpoint, region }: BucketPlace): string {
  return `s3://${bucket}/${prefix} at ${endpoint ?? `Amazon's ${region}`}`;
}

/** What a failed call of the bucket means for who made it. */
export type BucketFailure =
  /** There is no such object. */
  | { readonly kind: "missing" }
  /** The server answered that it will not; asking again changes nothing. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Another attempt may succeed. */
  | { readonly kind: "failed"; readonly reason: string };

const triedAgain = new Set([408, 409, 425, 429]);

/** Judges what a call threw: an error of the SDK, of the network, or one of ours. */
export function bucketFailure(error: unknown): BucketFailure {
  const status = statusOf(error);
  const name = error instanceof Error ? error.name : "";
  if (codeOf(error) === "FILE_UNUSABLE") return { kind: "refused", reason: messageOf(error) };
  if (name === "CredentialsProviderError")
    return { kind: "refused", reason: `there is no access key: ${messageOf(error)}` };
  if (status === undefined) return { kind: "failed", reason: networkReason(error) };
  if (name === "NoSuchKey" || (status === 404 && name === "NotFound")) return { kind: "missing" };
  const reason = reasonOf(status, name, messageOf(error));
  // A clock that was wrong is put right by the answer that says so.
  const isFinal =
    status >= 400 && status < 500 && !triedAgain.has(status) && name !== "RequestTimeTooSkewed";
  return { kind: isFinal ? "refused" : "failed", reason };
}

const reasons: Readonly<Record<string, string>> = {
  NoSuchBucket: "there is no such bucket",
  AccessDenied: "the access key may not do that there",
  InvalidAccessKeyId: "the server does not know the access key",
  SignatureDoesNotMatch: "the secret is not that of the access key",
  PermanentRedirect: "the bucket is in another region",
  AuthorizationHeaderMalformed: "the bucket is in another region",
  SlowDown: "the server asks for fewer requests",
};

function reasonOf(status: number, name: string, message: string): string {
  const known = reasons[name];
  const told = message === "" || message === "UnknownError" ? name : `${name}: ${message}`;
  return known === undefined ? `it answered ${status} (${told})` : `${known} (${status} ${told})`;
}

function networkReason(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const text = messageOf(error);
  return code === "" || text.includes(code) ? text || "it does not answer" : `${text} (${code})`;
}

function statusOf(error: unknown): number | undefined {
  const { $metadata: metadata } = Object(error) as { readonly $metadata?: unknown }; // Whatever it is, a member of it.
  const { httpStatusCode: status } = Object(metadata) as { readonly httpStatusCode?: unknown };
  return typeof status === "number" ? status : undefined;
}

/** Pure. Says what to set where a server's name with the bucket's before it is in no DNS. */
export function nameHint({ endpoint, pathStyle }: BucketPlace, reason: string): string {
  const isUnknown = /\b(?:ENOTFOUND|EAI_AGAIN)\b/.test(reason);
  return isUnknown && endpoint !== undefined && !pathStyle
    ? " (the bucket's name stands before the host's; most servers other than Amazon's need `objects.s3.path_style: true`)"
    : "";
}

/** What is thrown where the bucket did not do its part. */
export function bucketFault(where: string, failure: BucketFailure, what: string): AccelError {
  const reason =
    failure.kind === "missing" ? "there is no such object" : failure.reason.replace(/\.$/, "");
  return new AccelError("OBJECTS_UNREACHABLE", `${what} of ${where}: ${reason}`);
}
