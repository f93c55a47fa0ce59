// The tables of packages and of the audit trail, and the step of the store that adds them.

import type { Generated } from "kysely";
import { table, type Db } from "./engine/migration-tables.ts";

export type OperatorTables = {
  /** Accelerator packages. A row says that the file is whole. */
  packages: {
    id: Generated<number>;
    /** PEP 440, in its normal form. */
    version: string;
    /** Equal for equal versions. */
    version_key: string;
    file: string;
    size: number;
    sha256: string;
    /** Name of the file in the directory of packages. */
    stored_as: string;
    uploaded_by_user_id: number;
    when_created: string;
  };
  /** Who changed what. Without references: it outlives whom it tells of. */
  audit: {
    id: Generated<number>;
    at: string;
    via: "api" | "operator";
    who: string;
    user_id: number | null;
    customer_id: number | null;
    action: string;
    /** JSON. */
    ids: string;
    change: string;
    address: string | null;
    request_id: string | null;
  };
};

export async function packagesAndAudit(db: Db): Promise<void> {
  await table(db, "packages", {
    id: "id",
    version: "text!",
    version_key: "text!",
    file: "text!",
    size: "bigint!",
    sha256: "text!",
    stored_as: "text!",
    uploaded_by_user_id: "integer!",
    when_created: "text!",
  })
    .addUniqueConstraint("packages_version", ["version_key"])
    .execute();
  // Without an index: each change writes it, and hardly anybody reads it (audit.ts says how).
  await table(db, "audit", {
    id: "id",
    at: "text!",
    via: "text!",
    who: "text!",
    user_id: "integer",
    customer_id: "integer",
    action: "text!",
    ids: "text!",
    change: "text!",
    address: "text",
    request_id: "text",
  }).execute();
}
