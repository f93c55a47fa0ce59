// The keys of central's settings about certificates that it orders: a part of the table in fields.ts.

import { flagField, integer, listOf, textField } from "../../base/settings-fields.ts";
import type { FieldTable } from "../../base/settings.ts";

export const acmeFields = {
  "acme.ca_file": {
    doc: "A further certificate authority (PEM) for the directories of ACME that devloves name, where one is certified by no public authority.",
    optional: true,
    example: "/etc/accel-central/acme-ca.pem",
    parse: textField(/^\//, "an absolute path"),
  },
  "acme.private_addresses": {
    doc: "Whether directories of ACME, and hosts that certificates are ordered for, may lead to private addresses, including this host's own.",
    fallback: false,
    parse: flagField(),
  },
  "acme.resolvers": {
    doc: "The DNS servers (address, or address:port) that central asks where a host leads before it asks a directory to look. Name public ones where this host's own answer differently inside than outside. Without any, this host's own are asked.",
    fallback: [],
    parse: listOf(
      textField(
        /^(?:[0-9.]+(?::\d{1,5})?|\[[0-9A-Fa-f:]+\](?::\d{1,5})?)$/,
        "an address, or address:port",
      ),
    ),
  },
  "acme.check_port": {
    doc: "The port at which central looks at hosts before a directory does. Directories ask port 80.",
    fallback: 80,
    parse: integer(1, 65_535),
  },
} as const satisfies FieldTable;
