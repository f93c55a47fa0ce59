// Settings of a central whose blobs and packages lie in a bucket of the test's own.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { bucketName } from "./bucket-rig.ts";
import { s3Key } from "./s3-server.ts";

/** Writes the files of the access key, and returns the part of central.yaml. */
export function objectsYaml(directory: string, port: number): string {
  const [id, secret] = [join(directory, "s3.id"), join(directory, "s3.secret")];
  writeFileSync(id, `${s3Key.id}\n`);
  writeFileSync(secret, `${s3Key.secret}\n`, { mode: 0o600 });
  return [
    "objects:",
    "  s3:",
    `    endpoint: http://127.0.0.1:${port}`,
    `    bucket: ${bucketName}`,
    `    region: ${s3Key.region}`,
    "    prefix: central/",
    "    path_style: true",
    `    access_key_file: ${id}`,
    `    secret_key_file: ${secret}`,
    "",
  ].join("\n");
}
