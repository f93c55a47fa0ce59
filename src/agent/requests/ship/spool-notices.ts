// What an operator can do about each notice of the spool.

import type { SpoolNotice } from "../spool/spool-messages.ts";

export const noticeHints: Readonly<Record<SpoolNotice["code"], string>> = {
  spool_failing: "Check free space and health of the disk that holds the state directory.",
  spool_full: "Check that central can be reached; or give the spool more room with `spool.max`.",
  spool_blocking:
    "Check that central can be reached and that the disk has room; or choose another `spool.when_full`.",
  spool_damaged:
    "Check the disk; what was damaged is kept in spool/corrupt/ of the state directory.",
  spool_conflict: "Give each machine its own state directory: a copied one must not run twice.",
  spool_foreign:
    "The site's credentials changed: those records were not sent. Keep what you need, then empty the directory.",
};
