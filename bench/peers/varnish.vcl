# Varnish with purge, and bans over what the ban lurker may test too.
vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "{{origin_port}}"; }
acl operators { "127.0.0.1"; }
sub vcl_recv {
  if (req.method == "PURGE" || req.method == "BAN") {
    if (client.ip !~ operators) { return (synth(405)); }
    if (req.method == "PURGE") { return (purge); }
    ban("obj.http.x-url ~ " + req.http.x-ban);
    return (synth(200));
  }
}
sub vcl_backend_response { set beresp.http.x-url = bereq.url; }
sub vcl_deliver { unset resp.http.x-url; }
