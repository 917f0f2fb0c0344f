// client/src/error-codes.ts
var e = /* @__PURE__ */ "codec.model_file.model_access.model_format.model_contract.input.input_shape.input_type.non_finite_input.code_range.setting.numeric_overflow.snapshot.audio_file.codes_file.opus_data.checkpoint.output_exists.session.session_busy.session_closed.unavailable.internal.service.capacity.address_capacity.handshake_rate.connections.address_connections.draining.unauthorized.token_expired.token_scope.forbidden_origin.protocol.wrong_kind.payload.message_too_big.message_flood.control_rate.not_offered.hello_timeout.idle_timeout.session_timeout.too_slow.overloaded.request_timeout.resume_refused.resume_lost.taken_over.snapshot_store.body_timeout.body_too_large.unsupported_media.not_acceptable.not_found.method.upgrade_required".split("."), t = /* @__PURE__ */ new Set([
	"draining",
	"overloaded",
	"too_slow"
]), n = 600, r = class extends Error {
	code;
	subject;
	found;
	expected;
	reason;
	retryAfterMs;
	constructor(e, { subject: t, found: n = "", expected: r = "", reason: i = "", retryAfterMs: a = null }) {
		let o = [n && `found ${n}`, r && `expected ${r}`].filter(Boolean).join(", ");
		super(o ? `${t}: ${o}` : t), this.name = "MimiError", this.code = e, this.subject = t, this.found = n, this.expected = r, this.reason = i, this.retryAfterMs = a;
	}
};
function i(e, t, n = "", i = "") {
	return new r(e, {
		subject: t,
		found: n,
		expected: i
	});
}
function a(e) {
	let t = (t) => typeof e[t] == "string" ? e[t].slice(0, n) : "", i = e.retry_after_ms;
	return new r(t("code") || "service", {
		subject: t("subject") || t("message") || "service",
		found: t("found"),
		expected: t("expected"),
		reason: t("reason"),
		retryAfterMs: Number.isSafeInteger(i) && i >= 0 ? i : null
	});
}
async function o(e) {
	let t = await e.json().catch(() => null);
	return l(t) && l(t.error) ? a(t.error) : l(t) && t.draining === !0 ? new r("draining", {
		subject: "service",
		found: "one that goes down",
		retryAfterMs: 0
	}) : i("unavailable", "service", `HTTP status ${e.status}`, "a service that speaks mimi.v1 at this address");
}
function s(e, t) {
	return /^[a-z_]+$/.test(t) ? a({
		code: t,
		subject: "connection",
		found: `closed with ${e}`
	}) : i("unavailable", "connection", e === 1006 || e === 1005 ? "a connection that was cut" : `closed with ${e} ${t}`.trim(), "one that lasts until the stream is closed");
}
function c(e) {
	return t.has(e.code) || e.retryAfterMs !== null;
}
function l(e) {
	return typeof e == "object" && !!e && !Array.isArray(e);
}
// client/src/access.ts
var u = "/v1/stream";
function d(e, t = "") {
	let n = g(e);
	return n.protocol = n.protocol.replace("http", "ws"), n.pathname = n.pathname === "/" ? u : n.pathname, t && n.searchParams.set("token", t), n;
}
function f(e, t) {
	let n = g(e);
	return n.protocol = n.protocol.replace("ws", "http"), n.pathname = n.pathname.replace(/\/v1\/stream$/, "/").replace(/\/*$/, `/${t}`), n.search = "", n;
}
function p(e) {
	return e ? { Authorization: `Bearer ${String.fromCharCode(...new TextEncoder().encode(e))}` } : {};
}
async function m(e, t, n = "stream") {
	let r = f(e, "v1/token");
	r.searchParams.set("scope", n);
	let i;
	try {
		i = await fetch(r, {
			method: "POST",
			headers: p(t),
			cache: "no-store"
		});
	} catch (t) {
		throw h(e, t);
	}
	if (!i.ok) throw await o(i);
	return (await i.json()).token;
}
function h(e, t) {
	let n = t instanceof Error ? t.message : String(t);
	return i("unavailable", String(e).split("?", 1)[0] ?? "", n, "a service that can be reached");
}
function g(e) {
	try {
		let t = new URL(e);
		if (/^(http|ws)s?:$/.test(t.protocol) && !t.hash) return t;
	} catch {}
	throw i("setting", "url", `'${e}'`, "ws://HOST:PORT or wss://HOST:PORT, the path /v1/stream may be left out");
}
// client/src/messages.ts
var ee = "mimi.v1", te = 1, _ = 16, ne = 1, re = 2, ie = 64;
function ae(e) {
	let t;
	try {
		t = JSON.parse(e);
	} catch {
		throw S("text message", e);
	}
	if (!l(t)) throw S("text message", e);
	let n = Object.hasOwn(v, String(t.type)) ? v[String(t.type)] : void 0;
	return n ? n(t) : null;
}
function oe(e, t) {
	if (e.byteLength < _) throw S("frame", `${e.byteLength} bytes`);
	let n = new DataView(e), [r, i, a] = [
		n.getUint8(0),
		n.getUint8(1),
		n.getUint16(2, !0)
	], o = e.byteLength - _;
	if (r !== te) throw S("frame.version", String(r));
	let s = {
		type: "frame",
		sequence: n.getUint32(4, !0),
		position: Number(n.getBigUint64(8, !0)),
		latencyMs: null
	}, c = e.slice(_);
	if (i === ne && o === 2 * a) return {
		...s,
		codes: new Uint16Array(c)
	};
	if (i === re && a === 1 && o % (t === "s16le" ? 2 : 4) == 0) return {
		...s,
		pcm: t === "s16le" ? Float32Array.from(new Int16Array(c), (e) => e / 32768) : new Float32Array(c)
	};
	throw S("frame", `kind ${i}, width ${a}, ${o} bytes`);
}
var v = {
	ready: se,
	flushed: (e) => ({
		type: "flushed",
		frames: x(e, "frames"),
		samples: x(e, "samples"),
		paddedSamples: x(e, "padded_samples"),
		receivedSamples: x(e, "received_samples"),
		sentSamples: x(e, "sent_samples"),
		flushes: x(e, "flushes")
	}),
	reset_done: (e) => ({
		type: "reset_done",
		epoch: x(e, "epoch")
	}),
	checkpoint: (e) => ({
		type: "checkpoint",
		position: x(e, "position"),
		epoch: x(e, "epoch")
	}),
	warning: (e) => ({
		type: "warning",
		code: String(e.code),
		message: String(e.message)
	}),
	goaway: (e) => ({
		type: "goaway",
		timeLeftMs: x(e, "time_left_ms"),
		resumeToken: y(e.resume_token)
	}),
	error: (e) => ({
		type: "error",
		error: a(e)
	})
};
function se(e) {
	let [t, n, r, i] = [
		b(e, "settings"),
		b(e, "codec"),
		b(e, "limits"),
		b(e, "model")
	], a = (t) => t in e ? x(e, t) : 0;
	return {
		type: "ready",
		session: String(e.session),
		model: {
			name: String(i.name),
			sha256: String(i.sha256),
			weight_class: String(i.weight_class),
			numerics: String(i.numerics)
		},
		settings: t,
		levels: x(t, "levels", 1),
		sampleRateHz: x(n, "sample_rate", 1),
		frameSamples: x(n, "frame_samples", 1),
		codebookEntries: x(n, "codebook_entries", 1),
		creditFrames: x(e, "credit_frames", 1),
		maxMessageBytes: x(r, "max_message_bytes", 1),
		resumed: e.resumed === !0,
		resumeToken: y(e.resume_token),
		resumeGraceMs: a("resume_grace_ms"),
		epoch: a("epoch"),
		position: a("position"),
		flushes: a("flushes"),
		resampler: y(e.resampler)
	};
}
function y(e) {
	return typeof e == "string" ? e : null;
}
function b(e, t) {
	let n = e[t];
	if (!l(n)) throw S(t, JSON.stringify(n));
	return n;
}
function x(e, t, n = 0) {
	let r = e[t];
	if (!Number.isSafeInteger(r) || r < n) throw S(t, JSON.stringify(r));
	return r;
}
function S(e, t) {
	return i("unavailable", `service: ${e}`, (t ?? "nothing").slice(0, ie), "a message of mimi.v1");
}
// client/src/timing.ts
var ce = 2048, C = 1e-6, le = class {
	#e;
	#t = -1;
	#n = 0;
	constructor(e) {
		this.#e = e;
	}
	delayMs(e, t, n) {
		return e > this.#t && (this.#t = e, this.#n = n), e < this.#t ? 0 : Math.max(0, this.#n + 1e3 * t / this.#e - n);
	}
}, ue = class {
	sentFrames = 0;
	answeredFrames = 0;
	#e;
	#t = [];
	#n = 0;
	#r = [];
	constructor(e) {
		this.#e = e;
	}
	restart(e = 0) {
		this.#n = e === 0 ? 0 : this.#n, this.#r = [], this.sentFrames = e / this.#e + this.#n, this.answeredFrames = e === 0 ? 0 : Math.min(this.answeredFrames, Math.floor(this.sentFrames));
	}
	sent(e, t) {
		this.sentFrames += e / this.#e, this.#r.push({
			frames: this.sentFrames,
			atMs: t
		});
	}
	flushSent(e) {
		let t = Math.ceil(this.sentFrames - C);
		this.#n += Math.max(0, t - this.sentFrames), this.sentFrames = Math.max(t, this.sentFrames), this.#r.push({
			frames: this.sentFrames,
			atMs: e
		});
	}
	answered(e, t) {
		this.answeredFrames = Math.max(this.answeredFrames, e + 1);
		let n = 0;
		for (; (this.#r[n]?.frames ?? Infinity) < e + 1 - C;) n += 1;
		this.#r.splice(0, n);
		let [r] = this.#r;
		return r ? (this.#t.push(t - r.atMs), this.#t.length > ce && this.#t.shift(), t - r.atMs) : null;
	}
	get inFlightFrames() {
		return Math.max(0, this.sentFrames - this.answeredFrames);
	}
	percentileMs(e) {
		let t = [...this.#t].sort((e, t) => e - t);
		return t[Math.min(t.length - 1, Math.floor(e / 100 * t.length))] ?? null;
	}
};
function* de(e, t, n = Math.random) {
	for (let r = e;; r = Math.min(t, 2 * r)) yield n() * r;
}
// client/src/waiting.ts
function w() {
	let e = {};
	return e.promise = new Promise((t, n) => {
		e.resolve = t, e.reject = n;
	}), e;
}
var T = class {
	#e = w();
	wait() {
		return this.#e.promise;
	}
	notify() {
		this.#e.resolve(), this.#e = w();
	}
}, fe = 1e3, pe = 1011, me = [
	1001,
	1005,
	1006,
	1012,
	1013
], he = 4e3, ge = 1, _e = [
	502,
	503,
	504
], E = class e {
	ended;
	heardAtMs = performance.now();
	#e;
	#t;
	#n;
	#r = () => {};
	constructor(e, t, n) {
		this.#e = e, this.#t = t, this.#n = n, this.ended = new Promise((e) => {
			this.#r = e;
		}), e.binaryType = "arraybuffer", e.onopen = () => e.send(t.opening()), e.onerror = () => {}, e.onmessage = ({ data: e }) => this.#i(e), e.onclose = ({ code: e, reason: t }) => this.#r(be(e, t));
	}
	static async open(t, n, i, a) {
		let o;
		try {
			o = await ye(t, i);
		} catch (e) {
			let n = e instanceof r ? e : h(t, e);
			return {
				error: n,
				isLost: c(n) || n.code === "unavailable",
				isDone: !1
			};
		}
		let s = w(), l = new i.WebSocket(d(t, o), ee), u = !1, f = new e(l, n, (e) => {
			u ||= e.type === "ready", e.type === "ready" ? s.resolve("ready") : a(e);
		}), p = setTimeout(() => f.abandon(`no answer within ${i.openTimeoutMs} ms`), i.openTimeoutMs), m = await Promise.race([s.promise, f.ended]);
		if (clearTimeout(p), m === "ready") return f;
		let g = !m.error.reason && m.error.code === "unavailable" && !u;
		return n.beginAgain(m.error) ? {
			...m,
			isLost: !0
		} : g ? await xe(t, i, m) : m;
	}
	get bufferedBytes() {
		return this.#e.bufferedAmount;
	}
	get isOpen() {
		return this.#e.readyState === ge;
	}
	send(e) {
		this.#e.send(e);
	}
	abandon(e) {
		this.fail(i("unavailable", "connection", e, "one that lasts until the stream is closed"), !0);
	}
	fail(e, t) {
		this.#r({
			error: e,
			isLost: t,
			isDone: !1
		}), this.#e.onmessage = null, this.#e.close(he);
	}
	#i(e) {
		this.heardAtMs = performance.now();
		try {
			let t = this.#t.receive(e, this.heardAtMs);
			if (t?.type === "error") {
				let e = t.error.code === "idle_timeout" && this.#t.outbox.hasUnsent;
				this.#r({
					error: t.error,
					isLost: e || c(t.error),
					isDone: !1
				});
			} else t && this.#n(t);
		} catch (e) {
			this.fail(e instanceof r ? e : i("internal", "stream", String(e)), !1);
		}
	}
};
async function ve(e, t, n, r, i, a, o = () => !0) {
	let s = performance.now() + e;
	for (let e of de(r.firstDelayMs, r.longestDelayMs)) {
		if (a) {
			let t = Math.max(e, a.error.retryAfterMs ?? 0);
			if (performance.now() + t > s || !o()) break;
			await new Promise((e) => setTimeout(e, t));
		}
		let c = await E.open(t, n, r, i);
		if (c instanceof E) return c;
		if (!c.isLost) throw c.error;
		a = c;
	}
	throw a?.error ?? h(t, "no time to try");
}
async function ye(e, { token: t, key: n }) {
	return t === void 0 ? n ? m(e, n) : "" : typeof t == "string" ? t : t();
}
function be(e, t) {
	let n = s(e, t);
	return {
		error: n,
		isLost: e === pe && n.code === "unavailable" || me.includes(e) || c(n),
		isDone: e === fe
	};
}
async function xe(e, t, n) {
	try {
		for (let n of ["readyz", "v1/info"]) {
			let r = await fetch(f(e, n), {
				cache: "no-store",
				headers: p(t.key),
				signal: AbortSignal.timeout(t.openTimeoutMs)
			});
			if (!r.ok && !(n === "v1/info" && t.token)) {
				let e = await o(r);
				return {
					error: e,
					isLost: c(e) || _e.includes(r.status),
					isDone: !1
				};
			}
		}
		let r = i("unavailable", "handshake", "one that was refused, by a service that answers requests", "one that is let through");
		return {
			...n,
			error: r,
			isLost: !0
		};
	} catch (t) {
		return {
			...n,
			error: h(e, t),
			isLost: !0
		};
	}
}
// client/src/settings.ts
var D = [
	"encode",
	"decode",
	"echo"
], O = {
	s16le: 2,
	f32le: 4
}, Se = 2, k = 12.5;
function Ce(e) {
	let { mode: t = "encode", sampleFormat: n = "s16le", sampleRateHz: r = 24e3, channels: a = 1, levels: o, numerics: s } = e;
	if (!D.includes(t)) throw i("setting", "mode", String(t), D.join(" | "));
	if (!(n in O)) throw i("setting", "sampleFormat", String(n), Object.keys(O).join(" | "));
	return {
		mode: t,
		sampleFormat: n,
		sampleRateHz: r,
		channels: a,
		hello: {
			mode: t,
			format: n,
			sample_rate: r,
			...t === "decode" ? {} : { channels: a },
			...e.echoCodes ? { echo_codes: "on" } : {},
			...e.freePace ? { pace: "free" } : {},
			...o === void 0 ? {} : { levels: o },
			...s === void 0 ? {} : { numerics: s }
		}
	};
}
function we({ mode: e, sampleFormat: t, channels: n }, r) {
	return e === "decode" ? Se * r : O[t] * n;
}
function A({ mode: e, sampleRateHz: t }) {
	return e === "decode" ? k : t;
}
function Te(e) {
	let t = {
		resume: !0,
		giveUpMs: null,
		waitForPlaceMs: 0,
		firstDelayMs: 100,
		longestDelayMs: 5e3,
		openTimeoutMs: 1e4,
		closeTimeoutMs: 5e3,
		pingIntervalMs: 2e4,
		pingTimeoutMs: 2e4,
		maxUnsentBytes: 1 << 18,
		maxHeldBytes: 1 << 25,
		maxReceivedFrames: 256,
		WebSocket: globalThis.WebSocket,
		...e
	};
	if (typeof t.WebSocket != "function") throw i("unavailable", "WebSocket", "none on this platform", "Node 22 or newer, or the option WebSocket");
	return t;
}
// client/src/conversation.ts
var Ee = 8, De = 65536, Oe = 10, j = 1e3, ke = class {
	#e;
	#t;
	#n;
	#r;
	#i;
	#a = null;
	#o = null;
	#s = !1;
	#c = !1;
	#l = [];
	#u = new T();
	#d = new T();
	#f = [];
	#p = [];
	#m = null;
	#h = null;
	#g = 0;
	#_ = null;
	room = new T();
	constructor(e, t, n, r, i) {
		this.#e = e, this.#n = t, this.#t = n, this.#r = r ? new le(A(t.asked)) : null, this.#i = i;
	}
	async open() {
		this.#b(await this.#y(this.#t.waitForPlaceMs, null));
	}
	get waitingFrames() {
		return this.#l.length;
	}
	flush() {
		return this.#v("flush", this.#f);
	}
	reset() {
		return this.#v("reset", this.#p);
	}
	fail(e) {
		!this.#o && !this.#s && (this.#o = e instanceof r ? e : i("input", "source", String(e), "input to send"), this.#a?.fail(this.#o, !1), this.#E());
	}
	async next() {
		for (;;) {
			let e = this.#l.shift();
			if (e) return this.pump(), e;
			if (this.#o) throw this.#o;
			if (this.#c || this.#s) return null;
			await this.#u.wait();
		}
	}
	async #v(e, t) {
		this.requireOpen();
		let n = w();
		return t.push(n), this.#n.outbox.appendControl(e), this.pump(), n.promise;
	}
	async close() {
		!this.#s && !this.#c && this.#n.outbox.appendControl("close"), this.#s = !0, this.#l = [], this.pump();
		let e = setTimeout(() => this.#a?.abandon("closing took too long"), this.#t.closeTimeoutMs), t = setTimeout(() => this.#E(), this.#t.closeTimeoutMs);
		for (; !this.#c;) await this.#d.wait();
		clearTimeout(e), clearTimeout(t);
	}
	requireOpen() {
		if (this.#o) throw this.#o;
		if (this.#s || this.#c) throw i("session_closed", "stream", "closed", "an open stream");
	}
	get messageBytes() {
		let { outbox: e, asked: t, ready: n } = this.#n, r = this.#r ? 1 : Ee, i = Math.max(1, Math.floor(r * A(t) / k)), a = n.maxMessageBytes - n.maxMessageBytes % e.unitBytes;
		return Math.max(e.unitBytes, Math.min(i * e.unitBytes, a));
	}
	#y(e, t) {
		return ve(e, this.#e, this.#n, this.#t, (e) => this.#x(e), t, () => !this.#c && !this.#s);
	}
	async #b(e) {
		this.#h = setInterval(() => this.#T(), j), this.#g = performance.now();
		try {
			for (let t = e;;) {
				this.#a = t, this.#_ = null, this.pump();
				let e = await t.ended;
				if (this.#a = null, this.#c || this.#s && (e.isDone || e.isLost)) return;
				if (!e.isLost || this.#n.token === null) throw e.error;
				this.#i({
					kind: "lost",
					text: e.error.message
				}), t = await this.#y(this.#t.giveUpMs ?? this.#n.ready.resumeGraceMs, e), this.#i({
					kind: "resumed",
					text: this.#n.ready.resampler ? `resampler ${this.#n.ready.resampler}` : ""
				});
			}
		} catch (e) {
			this.#o ??= e instanceof r ? e : i("internal", "stream", String(e));
		} finally {
			this.#E();
		}
	}
	#x(e) {
		switch (e.type) {
			case "frame":
				this.#S(e);
				break;
			case "flushed":
				this.#S(e), this.#f.shift()?.resolve(e);
				break;
			case "reset_done":
				this.#p.shift()?.resolve();
				break;
			case "warning":
				this.#i({
					kind: "warning",
					text: `${e.code}: ${e.message}`
				});
				break;
			case "goaway": this.#i({
				kind: "goaway",
				text: `the service goes down in ${e.timeLeftMs} ms`
			});
		}
		this.pump();
	}
	#S(e) {
		this.#s || (this.#l.push(e), this.#u.notify());
	}
	pump() {
		let e = this.#a;
		if (!e?.isOpen) return;
		this.#n.ackIsDue && e.send(this.#n.ack());
		let { outbox: t } = this.#n;
		for (let n = t.peek(this.messageBytes); n; n = t.peek(this.messageBytes)) {
			if (e.bufferedBytes > De) {
				this.#w(Oe);
				return;
			}
			if (n.kind === "chunk") {
				let e = this.#r?.delayMs(n.epoch, (n.byte + n.data.length) / t.unitBytes, performance.now()) ?? 0;
				if (e > 0) {
					this.#w(e);
					return;
				}
				if (!this.#C) return;
			}
			e.send(this.#n.encoded(n)), this.#n.sent(n, performance.now()), this.room.notify();
		}
	}
	get #C() {
		let { inFlightFrames: e } = this.#n.meter;
		return e <= this.#n.ready.creditFrames && e + this.#l.length < this.#t.maxReceivedFrames;
	}
	#w(e) {
		this.#m ??= setTimeout(() => {
			this.#m = null, this.pump();
		}, e);
	}
	#T() {
		let e = performance.now(), t = e - this.#g > 5 * j;
		this.#g = e;
		let n = this.#a;
		n?.isOpen && (this.#_ === null || n.heardAtMs > this.#_ || t ? (this.#_ = null, e - n.heardAtMs > this.#t.pingIntervalMs && (n.send("{\"type\":\"ping\"}"), this.#_ = e)) : e - this.#_ > this.#t.pingTimeoutMs && n.abandon(`nothing heard for ${this.#t.pingTimeoutMs} ms after a ping`));
	}
	#E() {
		this.#c = !0, clearInterval(this.#h ?? void 0), clearTimeout(this.#m ?? void 0);
		let e = this.#o ?? i("session_closed", "stream", "closed before this was answered", "an open stream");
		for (let { promise: t, reject: n } of [...this.#f.splice(0), ...this.#p.splice(0)]) t.catch(() => {}), n(e);
		this.#u.notify(), this.room.notify(), this.#d.notify();
	}
};
// client/src/payload.ts
function Ae(e, t, n, r) {
	if (e instanceof Uint8Array) return new Uint8Array(e);
	if (t.mode === "decode") return je(e, n, r);
	if (e instanceof Uint16Array) throw i("input_type", "pcm", "Uint16Array", "Int16Array or Float32Array");
	if (e.length % t.channels) throw i("input_shape", "pcm", `${e.length} samples`, `a multiple of ${t.channels}, one of each channel`);
	if (e instanceof Float32Array && !e.every(Number.isFinite)) throw i("non_finite_input", "pcm", "NaN or infinity", "finite samples");
	return t.sampleFormat === "s16le" ? P(e instanceof Int16Array ? e : M(e)) : P(e instanceof Float32Array ? e : N(e));
}
function M(e) {
	return Int16Array.from(e, (e) => {
		let t = Math.max(-1, Math.min(1, e)) * 32768, n = Math.round(t), r = n - t === .5 && n % 2 != 0 ? n - 1 : n;
		return Math.min(32767, r);
	});
}
function N(e) {
	return Float32Array.from(e, (e) => e / 32768);
}
function je(e, t, n) {
	if (!(e instanceof Uint16Array)) throw i("input_type", "codes", e.constructor.name, "Uint16Array");
	if (e.length % t) throw i("input_shape", "codes", `${e.length} numbers`, `a multiple of ${t}, one of each level`);
	let r = e.findIndex((e) => e >= n);
	if (r >= 0) throw i("code_range", `codes[level ${r % t}, frame ${Math.floor(r / t)}]`, String(e[r]), `0 .. ${n - 1}`);
	return P(e);
}
function P(e) {
	return new Uint8Array(new Uint8Array(e.buffer, e.byteOffset, e.byteLength));
}
// client/src/outbox.ts
var Me = class {
	unitBytes;
	unsentBytes = 0;
	heldBytes = 0;
	#e;
	#t;
	#n = [];
	#r = 0;
	#i = {
		epoch: 0,
		byte: 0
	};
	#a = {
		epoch: 0,
		byte: 0
	};
	#o = 0;
	constructor(e, { keeps: t, maxHeldBytes: n }) {
		this.unitBytes = e, this.#e = t, this.#t = n;
	}
	get hasUnsent() {
		return this.#r < this.#n.length;
	}
	get isWhole() {
		return this.#a.epoch === 0 && this.#a.byte === 0;
	}
	append(e) {
		e.length > 0 && (this.#n.push({
			kind: "chunk",
			...this.#i,
			data: e
		}), this.#i.byte += e.length, this.unsentBytes += e.length);
	}
	appendControl(e) {
		this.#o += +(e === "flush"), this.#n.push({
			kind: e,
			...this.#i,
			ordinal: e === "flush" ? this.#o : 0
		}), e === "reset" && (this.#i = {
			epoch: this.#i.epoch + 1,
			byte: 0
		}, this.#o = 0);
	}
	peek(e) {
		let t = this.#n[this.#r];
		return t?.kind === "chunk" && t.data.length > e && this.#c(this.#r, e), this.#n[this.#r];
	}
	advance() {
		let e = this.#n[this.#r];
		this.#r += 1, e?.kind === "chunk" && (this.unsentBytes -= e.data.length, this.heldBytes += e.data.length), this.#e ? this.heldBytes > this.#t && this.#l(1) : this.#l(this.#r);
	}
	release(e, t) {
		let n = {
			epoch: e,
			byte: t * this.unitBytes
		};
		if (F(n, this.#a) <= 0) return;
		let r = 0;
		for (let e = this.#n[r]; e && r < this.#r && Ne(e, n); e = this.#n[r]) r += 1;
		let i = this.#n[r];
		r < this.#r && i?.kind === "chunk" && F(i, n) < 0 && (this.#c(r, n.byte - i.byte), this.#r += 1, r += 1), this.#l(r);
	}
	rewind(e, t, n) {
		let r = {
			epoch: e,
			byte: t * this.unitBytes
		};
		if (F(r, this.#i) > 0) throw i("internal", "resume", `a position behind the input, ${t}`, "at most its end");
		if (F(r, this.#a) < 0) throw i("unavailable", "resume", `input from ${t} of epoch ${e} asked for again, which is forgotten`, "more room (maxHeldBytes)");
		this.#r = this.#s(r, n);
		let a = (e) => e.reduce((e, t) => e + (t.kind === "chunk" ? t.data.length : 0), 0);
		this.heldBytes = a(this.#n.slice(0, this.#r)), this.unsentBytes = a(this.#n.slice(this.#r));
	}
	#s(e, t) {
		for (let n = 0; n < this.#n.length; n += 1) {
			let r = this.#n[n];
			if (r.kind === "chunk") {
				if (F(I(r), e) > 0) {
					let t = F(r, e) < 0 ? e.byte - r.byte : 0;
					return t > 0 && this.#c(n, t), n + +(t > 0);
				}
			} else if (!(r.epoch < e.epoch || r.kind === "flush" && r.ordinal <= t)) return n;
		}
		return this.#n.length;
	}
	#c(e, t) {
		let n = this.#n[e];
		if (n?.kind === "chunk") {
			let r = {
				...n,
				data: n.data.subarray(0, t)
			}, i = {
				...n,
				byte: n.byte + t,
				data: n.data.subarray(t)
			};
			this.#n.splice(e, 1, r, i);
		}
	}
	#l(e) {
		for (let t of this.#n.splice(0, e)) t.kind === "chunk" ? (this.heldBytes -= t.data.length, this.#a = I(t)) : t.kind === "reset" && (this.#a = {
			epoch: t.epoch + 1,
			byte: 0
		});
		this.#r -= e;
	}
};
function F(e, t) {
	return e.epoch - t.epoch || e.byte - t.byte;
}
function I(e) {
	return {
		epoch: e.epoch,
		byte: e.byte + e.data.length
	};
}
function Ne(e, t) {
	return e.kind === "chunk" ? F(I(e), t) <= 0 : F(e, t) < 0;
}
// client/src/protocol.ts
var Pe = 8, Fe = /* @__PURE__ */ new Set([
	"resume_refused",
	"resume_lost",
	"snapshot"
]), Ie = class {
	asked;
	token = null;
	epoch = 0;
	resumes = 0;
	repeatedFrames = 0;
	#e;
	#t;
	#n = null;
	#r = null;
	#i = null;
	#a = -1;
	#o = -1;
	#s = 0;
	constructor(e, { resume: t, maxHeldBytes: n }) {
		this.asked = e, this.#e = t, this.#t = n;
	}
	get ready() {
		return L(this.#n);
	}
	get outbox() {
		return L(this.#r);
	}
	get meter() {
		return L(this.#i);
	}
	opening() {
		return JSON.stringify(this.token === null ? {
			type: "hello",
			...this.asked.hello
		} : {
			type: "resume",
			token: this.token,
			last_sequence: this.#a,
			epoch: this.epoch
		});
	}
	beginAgain(e) {
		return !Fe.has(e.code) || this.token === null || this.epoch > 0 || !this.outbox.isWhole ? !1 : (this.token = null, !0);
	}
	receive(e, t) {
		if (typeof e != "string") return this.#l(oe(e, this.asked.sampleFormat), t);
		let n = ae(e);
		switch (n?.type) {
			case "ready": return this.#c(n), n;
			case "checkpoint": return this.outbox.release(n.epoch, n.position), n;
			case "goaway": return this.token = this.#e && n.resumeToken || this.token, n;
			case "flushed": return this.#u(n) ? n : null;
			case "reset_done": return this.#d(n.epoch) ? n : null;
			default: return n;
		}
	}
	encoded(e) {
		return e.kind === "chunk" ? e.data : JSON.stringify({ type: e.kind });
	}
	sent(e, t) {
		e.kind === "flush" ? this.meter.flushSent(t) : e.kind === "chunk" && e.epoch === this.epoch && this.meter.sent(e.data.length / this.outbox.unitBytes, t), this.outbox.advance();
	}
	get ackIsDue() {
		return this.token !== null && this.#a - this.#o >= Pe;
	}
	ack() {
		return this.#o = this.#a, JSON.stringify({
			type: "ack",
			sequence: this.#a,
			epoch: this.epoch
		});
	}
	#c(e) {
		if (this.#n && R(e) !== R(this.#n)) throw i("unavailable", "service", `another codec, ${R(e)}`, `${R(this.#n)}, as at the start`);
		this.#n = e, this.token = this.#e ? e.resumeToken : null, !this.#r || !this.#i ? (this.#r = new Me(we(this.asked, e.levels), {
			keeps: this.token !== null,
			maxHeldBytes: this.#t
		}), this.#i = new ue(A(this.asked) / k)) : (this.resumes += 1, this.#o = this.#a, this.#r.rewind(e.epoch, e.position, e.flushes), e.epoch === this.epoch && this.#i.restart(e.position));
	}
	#l(e, t) {
		let { frameSamples: n } = this.ready;
		if (e.sequence <= this.#a) return this.repeatedFrames += 1, this.meter.answered(Math.floor(e.position / n), t), null;
		if (e.sequence !== this.#a + 1) throw i("internal", "service", `answer ${e.sequence}`, `${this.#a + 1}, the next`);
		return this.#a = e.sequence, {
			...e,
			latencyMs: this.meter.answered(Math.floor(e.position / n), t)
		};
	}
	#u(e) {
		let t = e.flushes > this.#s;
		return this.#s = Math.max(this.#s, e.flushes), t;
	}
	#d(e) {
		return e <= this.epoch ? !1 : (this.epoch = e, this.#a = this.#o = -1, this.#s = 0, this.outbox.release(e, 0), this.meter.restart(), !0);
	}
};
function L(e) {
	if (e === null) throw i("unavailable", "stream", "no settings agreed yet", "an open stream");
	return e;
}
function R({ model: e, levels: t }) {
	return `${e.sha256.slice(0, 12)}, ${e.numerics}, ${t} levels`;
}
// client/src/stream.ts
var z = class e {
	#e;
	#t;
	#n;
	constructor(e, t, { paced: n = !1, notify: r = () => {}, ...i }) {
		this.#e = Te(i), this.#t = new Ie(Ce(t), this.#e), this.#n = new ke(e, this.#t, this.#e, n, r);
	}
	static async connect(t, n = {}, r = {}) {
		let i = new e(t, n, r);
		return await i.#n.open(), i;
	}
	get ready() {
		return this.#t.ready;
	}
	get stats() {
		let { meter: e, outbox: t, asked: n } = this.#t, r = (t) => e.percentileMs(t);
		return {
			sentFrames: e.sentFrames,
			answeredFrames: e.answeredFrames,
			lagMs: 1e3 * Math.floor(e.inFlightFrames) / k,
			unsentMs: 1e3 * t.unsentBytes / t.unitBytes / A(n),
			waitingFrames: this.#n.waitingFrames,
			latencyMs: {
				p50: r(50),
				p95: r(95),
				p99: r(99),
				max: r(100)
			},
			resumes: this.#t.resumes,
			repeatedFrames: this.#t.repeatedFrames
		};
	}
	async send(e) {
		this.#n.requireOpen();
		let { levels: t, codebookEntries: n } = this.ready, { outbox: r } = this.#t, i = Ae(e, this.#t.asked, t, n);
		for (let e = 0; e < i.length; e += this.#n.messageBytes) {
			for (; r.unsentBytes >= this.#e.maxUnsentBytes;) this.#n.requireOpen(), await this.#n.room.wait();
			this.#n.requireOpen(), r.append(i.subarray(e, e + this.#n.messageBytes)), this.#n.pump();
		}
	}
	async flush() {
		return this.#n.flush();
	}
	async reset() {
		return this.#n.reset();
	}
	async receive() {
		for (;;) {
			let e = await this.#n.next();
			if (e?.type !== "flushed") return e;
		}
	}
	async *[Symbol.asyncIterator]() {
		for (let e = await this.receive(); e; e = await this.receive()) yield e;
	}
	async *run(e) {
		let t = this.#r(e);
		for (t.catch(() => {});;) {
			let e = await this.#n.next();
			if (e === null) throw await t, i("session_closed", "stream", "closed before this was answered", "an open stream");
			if (e.type === "flushed") return e;
			yield e;
		}
	}
	close() {
		return this.#n.close();
	}
	async [Symbol.asyncDispose]() {
		await this.close();
	}
	async #r(e) {
		try {
			for await (let t of e) await this.send(t);
			await this.flush();
		} catch (e) {
			throw this.#n.fail(e), e;
		}
	}
};
// client/src/clip.ts
async function Le(e, t, n = {}, r = {}) {
	return (await B(e, t, {
		...n,
		mode: "encode"
	}, r)).codes;
}
async function Re(e, t, n = {}) {
	let { pcm: r } = await B(e, t.data, {
		mode: "decode",
		levels: t.levels,
		sampleFormat: "f32le"
	}, n);
	return t.samples === null ? r : r.slice(0, t.samples);
}
async function ze(e, t, n = {}, r = {}) {
	let { flushed: i, ...a } = await B(e, t, {
		...n,
		mode: "echo",
		echoCodes: !0
	}, r);
	return {
		...a,
		pcm: a.pcm.slice(0, i.receivedSamples)
	};
}
async function B(e, t, n, r) {
	let i = await z.connect(e, n, r);
	try {
		let { levels: e } = i.ready, n = [], r = [], a = i.run([t]), o = await a.next();
		for (; !o.done; o = await a.next()) o.value.codes && n.push(o.value.codes), o.value.pcm && r.push(o.value.pcm);
		let s = o.value;
		return {
			flushed: s,
			codes: {
				levels: e,
				frames: n.length,
				samples: s.samples,
				data: V(n, new Uint16Array(n.length * e))
			},
			pcm: V(r, new Float32Array(r.reduce((e, t) => e + t.length, 0)))
		};
	} finally {
		await i.close();
	}
}
function V(e, t) {
	let n = 0;
	for (let r of e) t.set(r, n), n += r.length;
	return t;
}
// client/src/codes.ts
var H = "NUMPY", U = "MIMI", W = 8, G = 64, K = 32767;
function Be(e, t) {
	if (t >= e.levels) return e;
	let n = new Uint16Array(e.frames * t);
	for (let r = 0; r < e.frames; r += 1) n.set(e.data.subarray(r * e.levels, r * e.levels + t), r * t);
	return {
		...e,
		levels: t,
		data: n
	};
}
function Ve({ levels: e, frames: t, data: n }) {
	let r = `{'descr': '${n.some((e) => e > K) ? "<u2" : "<i2"}', 'fortran_order': False, 'shape': (${e}, ${t}), }`, i = Math.ceil((10 + r.length + 1) / G) * G - 10, a = new Uint8Array(10 + i + 2 * n.length), o = new DataView(a.buffer);
	a.set(Uint8Array.from(`${H}\x01\x00`, (e) => e.charCodeAt(0))), o.setUint16(8, i, !0), a.set(new TextEncoder().encode(`${r.padEnd(i - 1)}\n`), 10);
	for (let r = 0; r < e; r += 1) for (let a = 0; a < t; a += 1) o.setUint16(10 + i + 2 * (r * t + a), n[a * e + r] ?? 0, !0);
	return a;
}
function He({ levels: e, data: t }) {
	let n = new Uint8Array(W + 2 * t.length), r = new DataView(n.buffer);
	return n.set(new TextEncoder().encode(U)), r.setInt32(4, e, !0), t.forEach((e, t) => {
		if (e > K) throw i("codes_file", ".mimi", `a code of ${e}`, "codes of at most 32767");
		r.setUint16(W + 2 * t, e, !0);
	}), n;
}
function Ue(e, t = "codes") {
	let n = String.fromCharCode(...e.subarray(0, 6));
	return n === H ? We(e, t) : n.startsWith(U) ? Ge(e, t) : Ke(e, t);
}
function We(e, t) {
	let n = new DataView(e.buffer, e.byteOffset, e.byteLength), r = e[6] === 1, i = r ? 10 : 12;
	if (e.length < i) throw J(t, "a header that is cut off");
	let a = i + (r ? n.getUint16(8, !0) : n.getUint32(8, !0)), o = new TextDecoder("latin1").decode(e.subarray(i, a)), s = /'descr': *'<([iu])([248])'/.exec(o), c = /'shape': *\((\d+), *(\d+)\)/.exec(o);
	if (!s || !c || !/'fortran_order': *False/.test(o)) throw J(t, o.trim().slice(0, 80) || "no header");
	let [l, u, d] = [
		Number(c[1]),
		Number(c[2]),
		Number(s[2])
	];
	if (l < 1 || e.length !== a + l * u * d) throw J(t, `${e.length - a} bytes of ${l} x ${u} codes`);
	let f = new Uint16Array(l * u);
	for (let e = 0; e < l; e += 1) for (let r = 0; r < u; r += 1) {
		let i = a + d * (e * u + r), o = d === 2 ? n.getInt16(i, !0) : d === 4 ? n.getInt32(i, !0) : Number(n.getBigInt64(i, !0));
		f[r * l + e] = q(s[1] === "u" && d === 2 ? o & 65535 : o, t);
	}
	return {
		levels: l,
		frames: u,
		samples: null,
		data: f
	};
}
function Ge(e, t) {
	let n = new DataView(e.buffer, e.byteOffset, e.byteLength), r = e.length < W ? 0 : n.getInt32(4, !0), i = (e.length - W) / 2;
	if (r < 1 || !Number.isInteger(i / r)) throw J(t, `${r} levels, ${e.length} bytes`);
	let a = Uint16Array.from({ length: i }, (e, r) => q(n.getInt16(W + 2 * r, !0), t));
	return {
		levels: r,
		frames: i / r,
		samples: null,
		data: a
	};
}
function Ke(e, t) {
	let n;
	try {
		n = JSON.parse(new TextDecoder().decode(e));
	} catch {
		throw J(t, "neither of them");
	}
	let r = l(n) ? n.codes : null;
	if (!Array.isArray(r) || r.length === 0 || !r.every((e) => Array.isArray(e) && e.length === r[0].length)) throw J(t, "JSON without codes[level][frame]");
	let [i, a] = [r.length, r[0].length], o = Uint16Array.from({ length: i * a }, (e, n) => q(r[n % i][Math.floor(n / i)], t)), s = n.samples;
	return {
		levels: i,
		frames: a,
		samples: Number.isSafeInteger(s) ? s : null,
		data: o
	};
}
function q(e, t) {
	if (!Number.isInteger(e) || e < 0 || e > 65535) throw J(t, `the code ${JSON.stringify(e)}`);
	return e;
}
function J(e, t) {
	return i("codes_file", e, t, ".npy [levels, frames], .mimi, or JSON of the service");
}
// client/src/jitter-buffer.ts
var qe = 5, Je = 120, Ye = 2e3, Xe = 1e4, Ze = 20, Qe = class {
	#e;
	#t;
	#n;
	#r;
	#i;
	#a;
	#o;
	#s;
	#c;
	#l;
	#u = 0;
	#d = 0;
	#f = 0;
	#p = 0;
	#m = !1;
	#h = "filling";
	#g = 0;
	#_ = 0;
	#v = 0;
	#y = 0;
	#b = 0;
	#x = Infinity;
	#S = 0;
	constructor({ sampleRateHz: e, channels: t = 1, targetMs: n = 160, mostTargetMs: r = 1280, capacityMs: i = 8e3 }) {
		let a = (t) => Math.round(t * e / 1e3);
		this.#n = a(qe), this.#e = Array.from({ length: t }, () => new Float32Array(a(i))), this.#t = Array.from({ length: t }, () => new Float32Array(this.#n)), this.#a = this.#r = a(n), this.#i = a(r), this.#o = a(Je), this.#s = a(Ye), this.#c = a(Xe), this.#l = a(Ze);
	}
	get report() {
		return {
			playedSamples: this.#d - this.#f,
			waitingSamples: this.#C,
			targetSamples: this.#a,
			underruns: this.#p,
			skippedSamples: this.#f
		};
	}
	get isDrained() {
		return this.#m && this.#C === 0;
	}
	push(e) {
		let t = this.#e[0].length, n = e[0].length, r = Math.max(0, n - t), i = this.#C + n - r - t;
		i > 0 && this.#O(Math.min(i + this.#n, this.#C)), this.#e.forEach((i, a) => {
			let o = e[a];
			for (let e = r; e < n; e += 1) i[(this.#u + e - r) % t] = o[e];
		}), this.#u += n - r;
	}
	end() {
		this.#m = !0;
	}
	pull(e) {
		let t = e[0].length;
		for (let n = 0; n < t; n += 1) this.#w(e, n);
		this.#h === "playing" && this.#D(t);
	}
	get #C() {
		return this.#u - this.#d;
	}
	#w(e, t) {
		if (this.#h === "filling" && this.#C > 0 && (this.#m || this.#C >= this.#a) && (this.#h = "playing"), this.#h === "playing" && !this.#m && this.#C <= this.#n && (this.#h = "fading", this.#_ = this.#C, this.#g = 0), this.#h === "filling" || this.#C === 0) {
			e.forEach((e) => e[t] = 0);
			return;
		}
		let n = this.#T(), r = this.#y > 0 ? Y(this.#y / this.#n) : 0;
		e.forEach((e, i) => {
			let a = this.#e[i], o = a[this.#d % a.length], s = r > 0 ? this.#t[i][this.#n - this.#y] : 0;
			e[t] = r > 0 ? n * (r * s + (1 - r) * o) : n === 1 ? o : n * o;
		}), this.#y = Math.max(0, this.#y - 1), this.#d += 1, this.#h === "fading" && this.#g === this.#_ && this.#E();
	}
	#T() {
		let e = 1;
		return this.#v > 0 && (e = 1 - Y(this.#v / this.#n), --this.#v), this.#h === "fading" && (this.#g += 1, e *= 1 - Y(this.#g / this.#_)), e;
	}
	#E() {
		this.#h = "filling", this.#p += 1, this.#a = Math.min(2 * this.#a, this.#i), this.#v = this.#n, this.#y = 0, this.#S = 0, this.#b = 0, this.#x = Infinity;
	}
	#D(e) {
		this.#b += e, this.#S += e, this.#x = Math.min(this.#x, this.#C), this.#S >= this.#c && (this.#S = 0, this.#a = Math.max(this.#r, this.#a - this.#l)), this.#b >= this.#s && (!this.#m && this.#x > this.#a + this.#o && this.#O(this.#x - this.#a), this.#b = 0, this.#x = Infinity);
	}
	#O(e) {
		this.#h !== "filling" && (this.#t.forEach((e, t) => {
			let n = this.#e[t];
			for (let t = 0; t < e.length; t += 1) {
				let r = t < this.#C ? n[(this.#d + t) % n.length] : 0, i = this.#y - t, a = i > 0 ? Y(i / this.#n) : 0;
				e[t] = a > 0 ? a * e[this.#n - i] + (1 - a) * r : r;
			}
		}), this.#y = this.#n), this.#d += e, this.#f += e;
	}
};
function Y(e) {
	return .5 - .5 * Math.cos(Math.PI * e);
}
// client/src/resampler.ts
var $e = 48, et = 9, tt = class {
	lookaheadSamples;
	#e;
	#t;
	#n;
	#r;
	#i;
	#a = 0;
	#o = 0;
	constructor(e, t) {
		let n = Z(e, t);
		this.#e = t / n, this.#t = e / n;
		let r = Math.min(1, t / e) * .94, i = e === t ? 0 : Math.ceil($e / r);
		this.lookaheadSamples = i, this.#n = i === 0 ? [] : Array.from({ length: this.#e }, (e, t) => nt(t / this.#e, i, r)), this.#r = new Float32Array(i === 0 ? 0 : i - 1), this.#i = 1 - i;
	}
	push(e) {
		if (this.lookaheadSamples === 0) return new Float32Array(e);
		this.#a += e.length;
		let t = new Float32Array(this.#r.length + e.length);
		return t.set(this.#r), t.set(e, this.#r.length), this.#r = t, this.#s(Math.max(0, Math.ceil((this.#a - this.lookaheadSamples) * this.#e / this.#t)));
	}
	flush() {
		if (this.lookaheadSamples === 0) return /* @__PURE__ */ new Float32Array();
		let e = this.#a, t = this.push(new Float32Array(this.lookaheadSamples + 1));
		return t.slice(0, Math.max(0, t.length - (this.#o - Math.ceil(e * this.#e / this.#t))));
	}
	#s(e) {
		let t = new Float32Array(Math.max(0, e - this.#o)), n = this.lookaheadSamples;
		for (let e = 0; e < t.length; e += 1) {
			let r = (this.#o + e) * this.#t, i = this.#n[r % this.#e], a = Math.floor(r / this.#e) - n + 1 - this.#i, o = 0;
			for (let e = 0; e < i.length; e += 1) o += this.#r[a + e] * i[e];
			t[e] = o;
		}
		this.#o += t.length;
		let r = Math.floor(this.#o * this.#t / this.#e) - n + 1;
		return this.#r = this.#r.slice(Math.max(0, r - this.#i)), this.#i = Math.max(r, this.#i), t;
	}
};
function nt(e, t, n) {
	let r = Float64Array.from({ length: 2 * t }, (r, i) => {
		let a = i - t + 1 - e, o = Math.PI * n * a;
		return (o === 0 ? 1 : Math.sin(o) / o) * X(et * Math.sqrt(Math.max(0, 1 - (a / t) ** 2)));
	}), i = r.reduce((e, t) => e + t, 0);
	return Float32Array.from(r, (e) => e / i);
}
function X(e) {
	let [t, n] = [1, 1];
	for (let r = 1; n > 1e-12 * t; r += 1) n *= (e / (2 * r)) ** 2, t += n;
	return t;
}
function Z(e, t) {
	return t === 0 ? e : Z(t, e % t);
}
// client/src/wav.ts
var Q = 44, $ = 1, rt = 65534;
function it(e, t = 24e3) {
	let n = e instanceof Int16Array ? e : M(e), r = new Uint8Array(Q + 2 * n.length), i = new DataView(r.buffer), a = (e, t) => r.set(new TextEncoder().encode(t), e);
	return a(0, "RIFF"), i.setUint32(4, r.length - 8, !0), a(8, "WAVEfmt "), i.setUint32(16, 16, !0), i.setUint16(20, $, !0), i.setUint16(22, 1, !0), i.setUint32(24, t, !0), i.setUint32(28, 2 * t, !0), i.setUint16(32, 2, !0), i.setUint16(34, 16, !0), a(36, "data"), i.setUint32(40, 2 * n.length, !0), r.set(new Uint8Array(n.buffer, n.byteOffset, n.byteLength), Q), r;
}
function at(e) {
	let t = new DataView(e.buffer, e.byteOffset, e.byteLength), n = (t) => String.fromCharCode(...e.subarray(t, t + 4));
	if (e.length < Q || n(0) !== "RIFF" || n(8) !== "WAVE") return null;
	let r = null;
	for (let i = 12; i + 8 <= e.length;) {
		let [a, o, s] = [
			n(i),
			i + 8,
			t.getUint32(i + 4, !0)
		];
		if (a === "fmt " && s >= 16 && o + 16 <= e.length && (r = [$, rt].includes(t.getUint16(o, !0)) && t.getUint16(o + 14, !0) === 16 ? {
			sampleRateHz: t.getUint32(o + 4, !0),
			channels: t.getUint16(o + 2, !0)
		} : null), a === "data" && r && r.channels > 0 && r.sampleRateHz > 0) {
			let t = Math.min(o + s, e.length), n = Math.floor((t - o) / (2 * r.channels)) * r.channels;
			return {
				...r,
				samples: new Int16Array(e.slice(o, o + 2 * n).buffer)
			};
		}
		i = o + s + s % 2;
	}
	return null;
}
export { e as ERROR_CODES, Qe as JitterBuffer, r as MimiError, z as MimiStream, tt as Resampler, Re as decode, ze as duplex, Le as encode, Be as firstLevels, Ue as parseCodes, at as parseWav, o as refusalOfAnswer, m as requestToken, d as streamUrl, N as toFloat32, M as toInt16, He as toMimi, Ve as toNpy, it as toWav };
