// The table of commands of both programs. What they print as help, the man pages and the completions of shells come from it.

import type { Command } from "../base/command.ts";

/** A command whose code is loaded once it is given. `summary` is its line in the list of commands. */
export type LazyCommand = {
  readonly summary: string;
  readonly load: () => Promise<Command>;
};

export const programs: Readonly<
  Record<"agent" | "central", Readonly<Record<string, LazyCommand>>>
> = {
  agent: {
    run: {
      summary: "serve the domains of a deployment site",
      load: async () => (await import("../agent/main.ts")).runCommand,
    },
    join: {
      summary: "make this host part of a deployment site, with a code",
      load: async () => (await import("../agent/join.ts")).joinCommand,
    },
    check: {
      summary: "check the settings file and report every error",
      load: async () => (await import("../agent/checking.ts")).agentCheckCommand,
    },
    doctor: {
      summary: "examine this host, and say what to do",
      load: async () => (await import("../agent/examining.ts")).doctorCommand,
    },
    netcheck: {
      summary: "ask central and each origin once, with times",
      load: async () => (await import("../agent/examining.ts")).netcheckCommand,
    },
    diagnostics: {
      summary: "collect what whoever helps needs in one archive, without secrets",
      load: async () => (await import("../agent/examining.ts")).diagnosticsCommand,
    },
    status: {
      summary: "warnings, link, cache, request records, certificates, domains",
      load: async () => (await import("../cli/agent-status.ts")).agentStatusCommand,
    },
    replace: {
      summary:
        "put the installed release in the place of the one that serves, while visitors are served",
      load: async () => (await import("../cli/agent-replace.ts")).replaceCommand,
    },
    cache: {
      summary: "search or clear the cache, its figures, its integrity",
      load: async () => (await import("../cli/agent-cache.ts")).cacheCommand,
    },
    why: {
      summary: "why a URL is cached, or is not any more",
      load: async () => (await import("../cli/agent-why.ts")).whyCommand,
    },
    bots: {
      summary: "what would happen to an address; the sets in force",
      load: async () => (await import("../cli/agent-bots.ts")).agentBotsCommand,
    },
    viewset: {
      summary: "versions kept on this host; go back to one of them",
      load: async () => (await import("../cli/agent-viewset.ts")).viewsetCommand,
    },
    logs: {
      summary: "request records as they come, and their backlog",
      load: async () => (await import("../cli/agent-logs.ts")).logsCommand,
    },
    demo: {
      summary: "the whole service on this machine",
      load: async () => (await import("../demo/main.ts")).demoCommand,
    },
  },
  central: {
    serve: {
      summary: "run the service",
      load: async () => (await import("../central/main.ts")).serveCommand,
    },
    check: {
      summary: "check the settings file and report every error",
      load: async () => (await import("../central/main.ts")).centralCheckCommand,
    },
    status: {
      summary: "warnings, log intake, hosts with their channel and release",
      load: async () => (await import("../cli/central-status.ts")).centralStatusCommand,
    },
    clear: {
      summary: "clear a site's cache by the customer API, with the proof of every instance",
      load: async () => (await import("../cli/central-clear.ts")).clearCommand,
    },
    images: {
      summary: "variants of a domain's images by day, made and held back",
      load: async () => (await import("../cli/central-images.ts")).imagesCommand,
    },
    logs: {
      summary: "request records that agents told as lost, and why",
      load: async () => (await import("../cli/central-logs.ts")).centralLogsCommand,
    },
    backup: {
      summary: "back up store, blobs, packages and logs while it runs",
      load: async () => (await import("../central/main.ts")).backupCommand,
    },
    restore: {
      summary: "restore a backup into an empty state directory",
      load: async () => (await import("../central/main.ts")).restoreCommand,
    },
    migrate: {
      summary: "move the store of a stopped central to PostgreSQL",
      load: async () => (await import("../central/main.ts")).migrateCommand,
    },
    objects: {
      summary: "move blobs and packages of a stopped central into a bucket",
      load: async () => (await import("../central/main.ts")).objectsCommand,
    },
    rekey: {
      summary: "seal every secret of the store with a new key file",
      load: async () => (await import("../central/main.ts")).rekeyCommand,
    },
    openapi: {
      summary: "print the OpenAPI document of the customer API",
      load: async () => (await import("../central/main.ts")).openApiCommand,
    },
    customer: {
      summary: "customers and what they have",
      load: async () => (await import("../cli/central-customer.ts")).customerCommand,
    },
    site: {
      summary: "deployment sites, and the codes with which hosts join them",
      load: async () => (await import("../cli/central-site.ts")).siteCommand,
    },
    user: {
      summary: "users of customers, their passwords and rights",
      load: async () => (await import("../cli/central-user.ts")).userCommand,
    },
    token: {
      summary: "tokens of the customer API",
      load: async () => (await import("../cli/central-token.ts")).tokenCommand,
    },
    audit: {
      summary: "who changed what, and when",
      load: async () => (await import("../cli/central-audit.ts")).auditCommand,
    },
    rollout: {
      summary: "a release over a customer's hosts, canary first, and back",
      load: async () => (await import("../cli/central-rollout.ts")).rolloutCommand,
    },
    certificate: {
      summary: "certificates that devloves order; try an order that waits now",
      load: async () => (await import("../cli/central-certificate.ts")).certificateCommand,
    },
    bots: {
      summary: "import a list of addresses into a bot of a domain",
      load: async () => (await import("../cli/central-bots.ts")).centralBotsCommand,
    },
  },
};
