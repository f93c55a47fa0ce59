// What blobs and packages in a bucket promise, and their collection, over PostgreSQL.

import { testOnPostgres } from "../../support/on-postgres.ts";

testOnPostgres({
  "blob-objects": async () => import("./objects/blob-objects.test.ts"),
  "package-objects": async () => import("./objects/package-objects.test.ts"),
  "blob-collection": async () => import("./content/blob-collection.test.ts"),
});
