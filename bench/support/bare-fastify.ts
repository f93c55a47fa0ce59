// What central's plain reads are measured against: a fastify route with the same queries in the same kind of transaction, and nothing else. The store and the
// port are its arguments.

import { createHash } from "node:crypto";
import fastify from "fastify";
import { createSealer } from "../../src/base/seal.ts";
import { CustomerStore } from "../../src/central/store/engine/customer-store.ts";
import { openStore } from "../../src/central/store/engine/database.ts";
import { userByToken } from "../../src/central/store/people/tokens.ts";
import { userProfile } from "../../src/central/store/people/users.ts";

const [path = "", port = "0"] = process.argv.slice(2);
const now = (): Date => new Date();
const store = new CustomerStore({
  store: await openStore(path, now),
  sealer: createSealer(Buffer.alloc(32)),
  now,
  randomBytes: (count) => new Uint8Array(count),
});
const app = fastify();
app.get("/user-profile/:pk/", async (request, reply) => {
  const token = (request.headers.authorization ?? "").slice("Token ".length);
  const digest = createHash("sha256").update(token).digest("hex");
  const actor = await store.transact(async (work) => userByToken(work, digest));
  if (actor === undefined) return reply.code(401).send({});
  const found = await store.transact(async (work) => userProfile(work, actor.userId));
  return found?.profile;
});
await app.listen({ host: "127.0.0.1", port: Number(port) });
process.once("disconnect", () => process.exit());
