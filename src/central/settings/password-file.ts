// A password that a key of the settings names by its file. It is never in the settings, nor in what is said of them.

import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { AccelError, messageOf } from "../../core/faults.ts";

/** Reads the password. Undefined where no file is named. Throws FILE_UNUSABLE, which names the key and the file. */
export function readPassword(key: string, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    const password = readFileSync(path, "utf8").replace(/\r?\n$/, "");
    if (password === "" || /[\r\n]/.test(password)) throw new TypeError("it must hold one line");
    return password;
  } catch (error) {
    throw new AccelError(
      "FILE_UNUSABLE",
      `${key} ${path} cannot be read by ${userInfo().username}: ${messageOf(error)}`,
    );
  }
}
