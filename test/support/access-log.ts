// Combined access logs as requests to replay. A line that is cut off gives what it has.

import { readFileSync } from "node:fs";

export type LoggedRequest = {
  readonly line: number;
  readonly ip: string;
  readonly method: string;
  readonly target: string;
  readonly httpVersion: string;
  readonly userAgent: string | undefined;
};

const head =
  /^(\S+) \S+ \S+ \[[^\]]*\] "(\S+) (\S+)(?: HTTP\/(\d\.\d))?" \S+ \S+(?: "(?:[^"\\]|\\.)*"(?: "((?:[^"\\]|\\.)*)"?)?)?/;

export function readAccessLog(path: string): readonly LoggedRequest[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((text) => text !== "")
    .map((text, i) => {
      const match = head.exec(text);
      if (match === null) throw new Error(`line ${i + 1} is no access log line: ${text}`);
      const [, ip = "", method = "", target = "", httpVersion = "1.1", userAgent] = match;
      return {
        line: i + 1,
        ip,
        method,
        target,
        httpVersion,
        userAgent: userAgent === "-" ? undefined : userAgent,
      };
    });
}
