// The keys of central's settings about where blobs and packages lie: a part of the table in fields.ts.

import { duration, flagField, httpUrl, textField } from "../../base/settings-fields.ts";
import type { FieldTable } from "../../base/settings.ts";
import { isLoopbackHost } from "./store-fields.ts";

const absolute = textField(/^\//, "an absolute path");

type Given = Readonly<Record<string, unknown>>;

const needs =
  (key: string, other: string) =>
  (settings: Given): string | undefined =>
    settings[key] !== undefined && settings[other] === undefined ? `needs \`${other}\`` : undefined;

export const objectsFields = {
  "objects.s3.bucket": {
    doc: "The bucket of S3 that holds blobs and packages, instead of `blobs` and `packages` in the state directory. docs/operations/cluster.md says what it must be; `accel-central objects move` brings there what lies in the state directory.",
    optional: true,
    example: "accel-central",
    parse: textField(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, "the name of a bucket"),
  },
  "objects.s3.endpoint": {
    doc: "The URL of the S3 server, https unless it is on this host. Without it, Amazon's of the region.",
    optional: true,
    example: "https://s3.example.com",
    parse: httpUrl(),
    conflict: (settings) => {
      const endpoint = settings["objects.s3.endpoint"];
      if (typeof endpoint !== "string") return undefined;
      const { protocol, hostname } = new URL(endpoint);
      return protocol === "http:" && !isLoopbackHost(hostname.replace(/^\[(.*)\]$/, "$1"))
        ? "must be https for a server that is not on this host"
        : needs("objects.s3.endpoint", "objects.s3.bucket")(settings);
    },
  },
  "objects.s3.region": {
    doc: "The region of the bucket. Servers that know none take any.",
    fallback: "us-east-1",
    parse: textField(/^[a-z0-9-]{1,64}$/, "the name of a region"),
  },
  "objects.s3.prefix": {
    doc: "What the keys of all objects begin with, up to a slash: nothing else lies below it.",
    fallback: "accel-central/",
    parse: textField(/^(?:[\w.-]+\/)+$/, "names, each with a slash behind it"),
  },
  "objects.s3.access_key_file": {
    doc: "The file with the id of the access key. Without it, the usual places of Amazon's SDK are looked at: environment, profile, the instance's role. It is read again every few minutes.",
    optional: true,
    example: "/etc/accel-central/s3.access_key",
    parse: absolute,
    conflict: (settings) =>
      needs("objects.s3.access_key_file", "objects.s3.bucket")(settings) ??
      needs("objects.s3.access_key_file", "objects.s3.secret_key_file")(settings),
  },
  "objects.s3.secret_key_file": {
    doc: "The file with the secret of the access key, readable by this user only.",
    optional: true,
    example: "/etc/accel-central/s3.secret_key",
    parse: absolute,
    conflict: needs("objects.s3.secret_key_file", "objects.s3.access_key_file"),
  },
  "objects.s3.ca_file": {
    doc: "The certificate authority (PEM) of the server's certificate, where it is no public one.",
    optional: true,
    example: "/etc/accel-central/s3-ca.pem",
    parse: absolute,
    conflict: needs("objects.s3.ca_file", "objects.s3.bucket"),
  },
  "objects.s3.path_style": {
    doc: "Whether the bucket stands in the path of URLs, and not in the host's name. Most servers other than Amazon's want that.",
    fallback: false,
    parse: flagField(),
  },
  "objects.delete_after": {
    doc: "How long an object stays in the bucket after nothing names it any more. It must not be shorter than the age of the oldest backup of the store that is to be restored: that backup names it.",
    fallback: "14d",
    parse: duration("1d"),
  },
} as const satisfies FieldTable;
