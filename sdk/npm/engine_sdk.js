// @ts-self-types="./engine_sdk.d.ts"
// engine-sdk 0.1.0, built by sdk/build_npm.ts; sources sha256:03ba89ddda164c0119f97d0f4cc0196ca415f2e5a48d4b69af61bf913799ac12
// Contains the package ws, which is:
// Copyright (c) 2011 Einar Otto Stangvik <einaros@gmail.com>
// Copyright (c) 2013 Arnout Kazemier and contributors
// Copyright (c) 2016 Luigi Pinca and contributors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
// associated documentation files (the "Software"), to deal in the Software without restriction,
// including without limitation the rights to use, copy, modify, merge, publish, distribute,
// sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions: The above copyright notice and this
// permission notice shall be included in all copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
// NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
// NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
// DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT
// OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
var __create = Object.create;
var __defProp = Object.defineProperty;
var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __getProtoOf = Object.getPrototypeOf;
var __hasOwnProp = Object.prototype.hasOwnProperty;
var __require = (id) => {
  const found = globalThis.process?.getBuiltinModule?.(id);
  if (!found) throw new Error(`Cannot find module ${id}`);
  return found;
};

var __esm = (fn, res) => function __init() {
  return fn && (res = (0, fn[__getOwnPropNames(fn)[0]])(fn = 0)), res;
};
var __commonJS = (cb, mod) => function __require2() {
  return mod || (0, cb[__getOwnPropNames(cb)[0]])((mod = { exports: {} }).exports, mod), mod.exports;
};
var __export = (target, all) => {
  for (var name in all)
    __defProp(target, name, { get: all[name], enumerable: true });
};
var __copyProps = (to, from, except, desc) => {
  if (from && typeof from === "object" || typeof from === "function") {
    for (let key of __getOwnPropNames(from))
      if (!__hasOwnProp.call(to, key) && key !== except)
        __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
  }
  return to;
};
var __toESM = (mod, isNodeMode, target) => (target = mod != null ? __create(__getProtoOf(mod)) : {}, __copyProps(
  // If the importer is in node compatibility mode or this is not an ESM
  // file that has been converted to a CommonJS file using a Babel-
  // compatible transform (i.e. "__esModule" has not been set), then set
  // "default" to the CommonJS "module.exports" for node compatibility.
  1 ? __defProp(target, "default", { value: mod, enumerable: true }) : target,
  mod
));

// npm/ws/8.23.0/lib/constants.js
var require_constants = __commonJS({
  "npm/ws/8.23.0/lib/constants.js"(exports, module) {
    "use strict";
    var BINARY_TYPES = [
      "nodebuffer",
      "arraybuffer",
      "fragments"
    ];
    var hasBlob = typeof Blob !== "undefined";
    if (hasBlob) BINARY_TYPES.push("blob");
    module.exports = {
      BINARY_TYPES,
      CLOSE_TIMEOUT: 3e4,
      EMPTY_BUFFER: Buffer.alloc(0),
      GUID: "258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
      hasBlob,
      kForOnEventAttribute: Symbol("kIsForOnEventAttribute"),
      kListener: Symbol("kListener"),
      kStatusCode: Symbol("status-code"),
      kWebSocket: Symbol("websocket"),
      NOOP: () => {
      }
    };
  }
});

// npm/ws/8.23.0/lib/buffer-util.js
var require_buffer_util = __commonJS({
  "npm/ws/8.23.0/lib/buffer-util.js"(exports, module) {
    "use strict";
    var { websocketMask, websocketUnmask } = __require("node:http");
    var { EMPTY_BUFFER } = require_constants();
    var FastBuffer = Buffer[Symbol.species];
    function concat(list, totalLength) {
      if (list.length === 0) return EMPTY_BUFFER;
      if (list.length === 1) return list[0];
      const target = Buffer.allocUnsafe(totalLength);
      let offset = 0;
      for (let i = 0; i < list.length; i++) {
        const buf = list[i];
        target.set(buf, offset);
        offset += buf.length;
      }
      if (offset < totalLength) {
        return new FastBuffer(target.buffer, target.byteOffset, offset);
      }
      return target;
    }
    function _mask(source, mask, output, offset, length) {
      for (let i = 0; i < length; i++) {
        output[offset + i] = source[i] ^ mask[i & 3];
      }
    }
    function _unmask(buffer, mask) {
      for (let i = 0; i < buffer.length; i++) {
        buffer[i] ^= mask[i & 3];
      }
    }
    function toArrayBuffer(buf) {
      if (buf.length === buf.buffer.byteLength) {
        return buf.buffer;
      }
      return buf.buffer.slice(buf.byteOffset, buf.byteOffset + buf.length);
    }
    function toBuffer(data) {
      toBuffer.readOnly = true;
      if (Buffer.isBuffer(data)) return data;
      let buf;
      if (data instanceof ArrayBuffer) {
        buf = new FastBuffer(data);
      } else if (ArrayBuffer.isView(data)) {
        buf = new FastBuffer(data.buffer, data.byteOffset, data.byteLength);
      } else {
        buf = Buffer.from(data);
        toBuffer.readOnly = false;
      }
      return buf;
    }
    module.exports = {
      concat,
      mask: _mask,
      toArrayBuffer,
      toBuffer,
      unmask: _unmask
    };
    if (websocketMask) {
      module.exports.mask = function(source, mask, output, offset, length) {
        if (length < 24) _mask(source, mask, output, offset, length);
        else websocketMask(source, mask, output, offset, length);
      };
      module.exports.unmask = function(buffer, mask) {
        if (buffer.length < 24) _unmask(buffer, mask);
        else websocketUnmask(buffer, mask);
      };
    } else if (!process.env.WS_NO_BUFFER_UTIL) {
      try {
        const bufferUtil = __require("bufferutil");
        module.exports.mask = function(source, mask, output, offset, length) {
          if (length < 48) _mask(source, mask, output, offset, length);
          else bufferUtil.mask(source, mask, output, offset, length);
        };
        module.exports.unmask = function(buffer, mask) {
          if (buffer.length < 32) _unmask(buffer, mask);
          else bufferUtil.unmask(buffer, mask);
        };
      } catch (e) {
      }
    }
  }
});

// npm/ws/8.23.0/lib/limiter.js
var require_limiter = __commonJS({
  "npm/ws/8.23.0/lib/limiter.js"(exports, module) {
    "use strict";
    var kDone = Symbol("kDone");
    var kRun = Symbol("kRun");
    var Limiter = class {
      /**
       * Creates a new `Limiter`.
       *
       * @param {Number} [concurrency=Infinity] The maximum number of jobs allowed
       *     to run concurrently
       */
      constructor(concurrency) {
        this[kDone] = () => {
          this.pending--;
          this[kRun]();
        };
        this.concurrency = concurrency || Infinity;
        this.jobs = [];
        this.pending = 0;
      }
      /**
       * Adds a job to the queue.
       *
       * @param {Function} job The job to run
       * @public
       */
      add(job) {
        this.jobs.push(job);
        this[kRun]();
      }
      /**
       * Removes a job from the queue and runs it if possible.
       *
       * @private
       */
      [kRun]() {
        if (this.pending === this.concurrency) return;
        if (this.jobs.length) {
          const job = this.jobs.shift();
          this.pending++;
          job(this[kDone]);
        }
      }
    };
    module.exports = Limiter;
  }
});

// npm/ws/8.23.0/lib/permessage-deflate.js
var require_permessage_deflate = __commonJS({
  "npm/ws/8.23.0/lib/permessage-deflate.js"(exports, module) {
    "use strict";
    var zlib = __require("node:zlib");
    var bufferUtil = require_buffer_util();
    var Limiter = require_limiter();
    var { kStatusCode } = require_constants();
    var FastBuffer = Buffer[Symbol.species];
    var TRAILER = Buffer.from([
      0,
      0,
      255,
      255
    ]);
    var kPerMessageDeflate = Symbol("permessage-deflate");
    var kTotalLength = Symbol("total-length");
    var kCallback = Symbol("callback");
    var kBuffers = Symbol("buffers");
    var kError = Symbol("error");
    var zlibLimiter;
    var PerMessageDeflate2 = class {
      /**
       * Creates a PerMessageDeflate instance.
       *
       * @param {Object} [options] Configuration options
       * @param {(Boolean|Number)} [options.clientMaxWindowBits] Advertise support
       *     for, or request, a custom client window size
       * @param {Boolean} [options.clientNoContextTakeover=false] Advertise/
       *     acknowledge disabling of client context takeover
       * @param {Number} [options.concurrencyLimit=10] The number of concurrent
       *     calls to zlib
       * @param {Boolean} [options.isServer=false] Create the instance in either
       *     server or client mode
       * @param {Number} [options.maxPayload=0] The maximum allowed message length
       * @param {(Boolean|Number)} [options.serverMaxWindowBits] Request/confirm the
       *     use of a custom server window size
       * @param {Boolean} [options.serverNoContextTakeover=false] Request/accept
       *     disabling of server context takeover
       * @param {Number} [options.threshold=1024] Size (in bytes) below which
       *     messages should not be compressed if context takeover is disabled
       * @param {Object} [options.zlibDeflateOptions] Options to pass to zlib on
       *     deflate
       * @param {Object} [options.zlibInflateOptions] Options to pass to zlib on
       *     inflate
       */
      constructor(options) {
        this._options = options || {};
        this._threshold = this._options.threshold !== void 0 ? this._options.threshold : 1024;
        this._maxPayload = this._options.maxPayload | 0;
        this._isServer = !!this._options.isServer;
        this._deflate = null;
        this._inflate = null;
        this.params = null;
        if (!zlibLimiter) {
          const concurrency = this._options.concurrencyLimit !== void 0 ? this._options.concurrencyLimit : 10;
          zlibLimiter = new Limiter(concurrency);
        }
      }
      /**
       * @type {String}
       */
      static get extensionName() {
        return "permessage-deflate";
      }
      /**
       * Create an extension negotiation offer.
       *
       * @return {Object} Extension parameters
       * @public
       */
      offer() {
        const params = {};
        if (this._options.serverNoContextTakeover) {
          params.server_no_context_takeover = true;
        }
        if (this._options.clientNoContextTakeover) {
          params.client_no_context_takeover = true;
        }
        if (this._options.serverMaxWindowBits) {
          params.server_max_window_bits = this._options.serverMaxWindowBits;
        }
        if (this._options.clientMaxWindowBits) {
          params.client_max_window_bits = this._options.clientMaxWindowBits;
        } else if (this._options.clientMaxWindowBits == null) {
          params.client_max_window_bits = true;
        }
        return params;
      }
      /**
       * Accept an extension negotiation offer/response.
       *
       * @param {Array} configurations The extension negotiation offers/reponse
       * @return {Object} Accepted configuration
       * @public
       */
      accept(configurations) {
        configurations = this.normalizeParams(configurations);
        this.params = this._isServer ? this.acceptAsServer(configurations) : this.acceptAsClient(configurations);
        return this.params;
      }
      /**
       * Releases all resources used by the extension.
       *
       * @public
       */
      cleanup() {
        if (this._inflate) {
          this._inflate.close();
          this._inflate = null;
        }
        if (this._deflate) {
          const callback = this._deflate[kCallback];
          this._deflate.close();
          this._deflate = null;
          if (callback) {
            callback(new Error("The deflate stream was closed while data was being processed"));
          }
        }
      }
      /**
       *  Accept an extension negotiation offer.
       *
       * @param {Array} offers The extension negotiation offers
       * @return {Object} Accepted configuration
       * @private
       */
      acceptAsServer(offers) {
        const opts = this._options;
        const accepted = offers.find((params) => {
          if (opts.serverNoContextTakeover === false && params.server_no_context_takeover || params.server_max_window_bits && (opts.serverMaxWindowBits === false || typeof opts.serverMaxWindowBits === "number" && opts.serverMaxWindowBits > params.server_max_window_bits) || typeof opts.clientMaxWindowBits === "number" && (typeof params.client_max_window_bits === "number" ? opts.clientMaxWindowBits > params.client_max_window_bits : !params.client_max_window_bits)) {
            return false;
          }
          return true;
        });
        if (!accepted) {
          throw new Error("None of the extension offers can be accepted");
        }
        if (opts.serverNoContextTakeover) {
          accepted.server_no_context_takeover = true;
        }
        if (opts.clientNoContextTakeover) {
          accepted.client_no_context_takeover = true;
        }
        if (typeof opts.serverMaxWindowBits === "number") {
          accepted.server_max_window_bits = opts.serverMaxWindowBits;
        }
        if (typeof opts.clientMaxWindowBits === "number") {
          accepted.client_max_window_bits = opts.clientMaxWindowBits;
        } else if (accepted.client_max_window_bits === true || opts.clientMaxWindowBits === false) {
          delete accepted.client_max_window_bits;
        }
        return accepted;
      }
      /**
       * Accept the extension negotiation response.
       *
       * @param {Array} response The extension negotiation response
       * @return {Object} Accepted configuration
       * @private
       */
      acceptAsClient(response) {
        const params = response[0];
        if (this._options.clientNoContextTakeover === false && params.client_no_context_takeover) {
          throw new Error('Unexpected parameter "client_no_context_takeover"');
        }
        if (!params.client_max_window_bits) {
          if (typeof this._options.clientMaxWindowBits === "number") {
            params.client_max_window_bits = this._options.clientMaxWindowBits;
          }
        } else if (this._options.clientMaxWindowBits === false || typeof this._options.clientMaxWindowBits === "number" && params.client_max_window_bits > this._options.clientMaxWindowBits) {
          throw new Error('Unexpected or invalid parameter "client_max_window_bits"');
        }
        return params;
      }
      /**
       * Normalize parameters.
       *
       * @param {Array} configurations The extension negotiation offers/reponse
       * @return {Array} The offers/response with normalized parameters
       * @private
       */
      normalizeParams(configurations) {
        configurations.forEach((params) => {
          Object.keys(params).forEach((key) => {
            let value = params[key];
            if (value.length > 1) {
              throw new Error(`Parameter "${key}" must have only a single value`);
            }
            value = value[0];
            if (key === "client_max_window_bits") {
              if (value !== true) {
                const num = +value;
                if (!Number.isInteger(num) || num < 8 || num > 15) {
                  throw new TypeError(`Invalid value for parameter "${key}": ${value}`);
                }
                value = num;
              } else if (!this._isServer) {
                throw new TypeError(`Invalid value for parameter "${key}": ${value}`);
              }
            } else if (key === "server_max_window_bits") {
              const num = +value;
              if (!Number.isInteger(num) || num < 8 || num > 15) {
                throw new TypeError(`Invalid value for parameter "${key}": ${value}`);
              }
              value = num;
            } else if (key === "client_no_context_takeover" || key === "server_no_context_takeover") {
              if (value !== true) {
                throw new TypeError(`Invalid value for parameter "${key}": ${value}`);
              }
            } else {
              throw new Error(`Unknown parameter "${key}"`);
            }
            params[key] = value;
          });
        });
        return configurations;
      }
      /**
       * Decompress data. Concurrency limited.
       *
       * @param {Buffer} data Compressed data
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @public
       */
      decompress(data, fin, callback) {
        zlibLimiter.add((done) => {
          this._decompress(data, fin, (err, result) => {
            done();
            callback(err, result);
          });
        });
      }
      /**
       * Compress data. Concurrency limited.
       *
       * @param {(Buffer|String)} data Data to compress
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @public
       */
      compress(data, fin, callback) {
        zlibLimiter.add((done) => {
          this._compress(data, fin, (err, result) => {
            done();
            callback(err, result);
          });
        });
      }
      /**
       * Decompress data.
       *
       * @param {Buffer} data Compressed data
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @private
       */
      _decompress(data, fin, callback) {
        const endpoint = this._isServer ? "client" : "server";
        if (!this._inflate) {
          const key = `${endpoint}_max_window_bits`;
          const windowBits = typeof this.params[key] !== "number" ? zlib.Z_DEFAULT_WINDOWBITS : this.params[key];
          this._inflate = zlib.createInflateRaw({
            ...this._options.zlibInflateOptions,
            windowBits
          });
          this._inflate[kPerMessageDeflate] = this;
          this._inflate[kTotalLength] = 0;
          this._inflate[kBuffers] = [];
          this._inflate.on("error", inflateOnError);
          this._inflate.on("data", inflateOnData);
        }
        this._inflate[kCallback] = callback;
        this._inflate.write(data);
        if (fin) this._inflate.write(TRAILER);
        this._inflate.flush(() => {
          const err = this._inflate[kError];
          if (err) {
            this._inflate.close();
            this._inflate = null;
            callback(err);
            return;
          }
          const data2 = bufferUtil.concat(this._inflate[kBuffers], this._inflate[kTotalLength]);
          if (this._inflate._readableState.endEmitted) {
            this._inflate.close();
            this._inflate = null;
          } else {
            this._inflate[kTotalLength] = 0;
            this._inflate[kBuffers] = [];
            if (fin && this.params[`${endpoint}_no_context_takeover`]) {
              this._inflate.reset();
            }
          }
          callback(null, data2);
        });
      }
      /**
       * Compress data.
       *
       * @param {(Buffer|String)} data Data to compress
       * @param {Boolean} fin Specifies whether or not this is the last fragment
       * @param {Function} callback Callback
       * @private
       */
      _compress(data, fin, callback) {
        const endpoint = this._isServer ? "server" : "client";
        if (!this._deflate) {
          const key = `${endpoint}_max_window_bits`;
          const windowBits = typeof this.params[key] !== "number" ? zlib.Z_DEFAULT_WINDOWBITS : this.params[key];
          this._deflate = zlib.createDeflateRaw({
            ...this._options.zlibDeflateOptions,
            windowBits
          });
          this._deflate[kTotalLength] = 0;
          this._deflate[kBuffers] = [];
          this._deflate.on("data", deflateOnData);
        }
        this._deflate[kCallback] = callback;
        this._deflate.write(data);
        this._deflate.flush(zlib.Z_SYNC_FLUSH, () => {
          if (!this._deflate) {
            return;
          }
          let data2 = bufferUtil.concat(this._deflate[kBuffers], this._deflate[kTotalLength]);
          if (fin) {
            data2 = new FastBuffer(data2.buffer, data2.byteOffset, data2.length - 4);
          }
          this._deflate[kCallback] = null;
          this._deflate[kTotalLength] = 0;
          this._deflate[kBuffers] = [];
          if (fin && this.params[`${endpoint}_no_context_takeover`]) {
            this._deflate.reset();
          }
          callback(null, data2);
        });
      }
    };
    module.exports = PerMessageDeflate2;
    function deflateOnData(chunk) {
      this[kBuffers].push(chunk);
      this[kTotalLength] += chunk.length;
    }
    function inflateOnData(chunk) {
      this[kTotalLength] += chunk.length;
      if (this[kPerMessageDeflate]._maxPayload < 1 || this[kTotalLength] <= this[kPerMessageDeflate]._maxPayload) {
        this[kBuffers].push(chunk);
        return;
      }
      this[kError] = new RangeError("Max payload size exceeded");
      this[kError].code = "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
      this[kError][kStatusCode] = 1009;
      this.removeListener("data", inflateOnData);
      this.reset();
    }
    function inflateOnError(err) {
      this[kPerMessageDeflate]._inflate = null;
      if (this[kError]) {
        this[kCallback](this[kError]);
        return;
      }
      err[kStatusCode] = 1007;
      this[kCallback](err);
    }
  }
});

// npm/ws/8.23.0/lib/validation.js
var require_validation = __commonJS({
  "npm/ws/8.23.0/lib/validation.js"(exports, module) {
    "use strict";
    var { isUtf8 } = __require("node:buffer");
    var { hasBlob } = require_constants();
    var tokenChars = [
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      1,
      0,
      1,
      1,
      1,
      1,
      1,
      0,
      0,
      1,
      1,
      0,
      1,
      1,
      0,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0,
      0,
      0,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      0,
      1,
      0,
      1,
      0
      // 112 - 127
    ];
    function isValidStatusCode(code) {
      return code >= 1e3 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006 || code >= 3e3 && code <= 4999;
    }
    function _isValidUTF8(buf) {
      const len = buf.length;
      let i = 0;
      while (i < len) {
        if ((buf[i] & 128) === 0) {
          i++;
        } else if ((buf[i] & 224) === 192) {
          if (i + 1 === len || (buf[i + 1] & 192) !== 128 || (buf[i] & 254) === 192) {
            return false;
          }
          i += 2;
        } else if ((buf[i] & 240) === 224) {
          if (i + 2 >= len || (buf[i + 1] & 192) !== 128 || (buf[i + 2] & 192) !== 128 || buf[i] === 224 && (buf[i + 1] & 224) === 128 || // Overlong
          buf[i] === 237 && (buf[i + 1] & 224) === 160) {
            return false;
          }
          i += 3;
        } else if ((buf[i] & 248) === 240) {
          if (i + 3 >= len || (buf[i + 1] & 192) !== 128 || (buf[i + 2] & 192) !== 128 || (buf[i + 3] & 192) !== 128 || buf[i] === 240 && (buf[i + 1] & 240) === 128 || // Overlong
          buf[i] === 244 && buf[i + 1] > 143 || buf[i] > 244) {
            return false;
          }
          i += 4;
        } else {
          return false;
        }
      }
      return true;
    }
    function isBlob(value) {
      return hasBlob && typeof value === "object" && typeof value.arrayBuffer === "function" && typeof value.type === "string" && typeof value.stream === "function" && (value[Symbol.toStringTag] === "Blob" || value[Symbol.toStringTag] === "File");
    }
    module.exports = {
      isBlob,
      isValidStatusCode,
      isValidUTF8: _isValidUTF8,
      tokenChars
    };
    if (isUtf8) {
      module.exports.isValidUTF8 = function(buf) {
        return buf.length < 24 ? _isValidUTF8(buf) : isUtf8(buf);
      };
    } else if (!process.env.WS_NO_UTF_8_VALIDATE) {
      try {
        const isValidUTF8 = __require("utf-8-validate");
        module.exports.isValidUTF8 = function(buf) {
          return buf.length < 32 ? _isValidUTF8(buf) : isValidUTF8(buf);
        };
      } catch (e) {
      }
    }
  }
});

// npm/ws/8.23.0/lib/receiver.js
var require_receiver = __commonJS({
  "npm/ws/8.23.0/lib/receiver.js"(exports, module) {
    "use strict";
    var { Writable } = __require("node:stream");
    var PerMessageDeflate2 = require_permessage_deflate();
    var { BINARY_TYPES, EMPTY_BUFFER, kStatusCode, kWebSocket } = require_constants();
    var { concat, toArrayBuffer, unmask } = require_buffer_util();
    var { isValidStatusCode, isValidUTF8 } = require_validation();
    var FastBuffer = Buffer[Symbol.species];
    var GET_INFO = 0;
    var GET_PAYLOAD_LENGTH_16 = 1;
    var GET_PAYLOAD_LENGTH_64 = 2;
    var GET_MASK = 3;
    var GET_DATA = 4;
    var INFLATING = 5;
    var DEFER_EVENT = 6;
    var Receiver2 = class extends Writable {
      /**
       * Creates a Receiver instance.
       *
       * @param {Object} [options] Options object
       * @param {Boolean} [options.allowSynchronousEvents=true] Specifies whether
       *     any of the `'message'`, `'ping'`, and `'pong'` events can be emitted
       *     multiple times in the same tick
       * @param {String} [options.binaryType=nodebuffer] The type for binary data
       * @param {Object} [options.extensions] An object containing the negotiated
       *     extensions
       * @param {Boolean} [options.isServer=false] Specifies whether to operate in
       *     client or server mode
       * @param {Number} [options.maxBufferedChunks=0] The maximum number of
       *     buffered data chunks
       * @param {Number} [options.maxFragments=0] The maximum number of message
       *     fragments
       * @param {Number} [options.maxPayload=0] The maximum allowed message length
       * @param {Boolean} [options.skipUTF8Validation=false] Specifies whether or
       *     not to skip UTF-8 validation for text and close messages
       */
      constructor(options = {}) {
        super();
        this._allowSynchronousEvents = options.allowSynchronousEvents !== void 0 ? options.allowSynchronousEvents : true;
        this._binaryType = options.binaryType || BINARY_TYPES[0];
        this._extensions = options.extensions || {};
        this._isServer = !!options.isServer;
        this._maxBufferedChunks = options.maxBufferedChunks | 0;
        this._maxFragments = options.maxFragments | 0;
        this._maxPayload = options.maxPayload | 0;
        this._skipUTF8Validation = !!options.skipUTF8Validation;
        this[kWebSocket] = void 0;
        this._bufferedBytes = 0;
        this._buffers = [];
        this._compressed = false;
        this._payloadLength = 0;
        this._mask = void 0;
        this._fragmented = 0;
        this._masked = false;
        this._fin = false;
        this._opcode = 0;
        this._totalPayloadLength = 0;
        this._messageLength = 0;
        this._numFragments = 0;
        this._fragments = [];
        this._errored = false;
        this._loop = false;
        this._state = GET_INFO;
      }
      /**
       * Implements `Writable.prototype._write()`.
       *
       * @param {Buffer} chunk The chunk of data to write
       * @param {String} encoding The character encoding of `chunk`
       * @param {Function} cb Callback
       * @private
       */
      _write(chunk, encoding, cb) {
        if (this._opcode === 8 && this._state == GET_INFO) return cb();
        if (this._maxBufferedChunks > 0 && this._buffers.length >= this._maxBufferedChunks) {
          cb(this.createError(RangeError, "Too many buffered chunks", false, 1008, "WS_ERR_TOO_MANY_BUFFERED_PARTS"));
          return;
        }
        this._bufferedBytes += chunk.length;
        this._buffers.push(chunk);
        this.startLoop(cb);
      }
      /**
       * Consumes `n` bytes from the buffered data.
       *
       * @param {Number} n The number of bytes to consume
       * @return {Buffer} The consumed bytes
       * @private
       */
      consume(n) {
        this._bufferedBytes -= n;
        if (n === this._buffers[0].length) return this._buffers.shift();
        if (n < this._buffers[0].length) {
          const buf = this._buffers[0];
          this._buffers[0] = new FastBuffer(buf.buffer, buf.byteOffset + n, buf.length - n);
          return new FastBuffer(buf.buffer, buf.byteOffset, n);
        }
        const dst = Buffer.allocUnsafe(n);
        do {
          const buf = this._buffers[0];
          const offset = dst.length - n;
          if (n >= buf.length) {
            dst.set(this._buffers.shift(), offset);
          } else {
            dst.set(new Uint8Array(buf.buffer, buf.byteOffset, n), offset);
            this._buffers[0] = new FastBuffer(buf.buffer, buf.byteOffset + n, buf.length - n);
          }
          n -= buf.length;
        } while (n > 0);
        return dst;
      }
      /**
       * Starts the parsing loop.
       *
       * @param {Function} cb Callback
       * @private
       */
      startLoop(cb) {
        this._loop = true;
        do {
          switch (this._state) {
            case GET_INFO:
              this.getInfo(cb);
              break;
            case GET_PAYLOAD_LENGTH_16:
              this.getPayloadLength16(cb);
              break;
            case GET_PAYLOAD_LENGTH_64:
              this.getPayloadLength64(cb);
              break;
            case GET_MASK:
              this.getMask();
              break;
            case GET_DATA:
              this.getData(cb);
              break;
            case INFLATING:
            case DEFER_EVENT:
              this._loop = false;
              return;
          }
        } while (this._loop);
        if (!this._errored) cb();
      }
      /**
       * Reads the first two bytes of a frame.
       *
       * @param {Function} cb Callback
       * @private
       */
      getInfo(cb) {
        if (this._bufferedBytes < 2) {
          this._loop = false;
          return;
        }
        const buf = this.consume(2);
        if ((buf[0] & 48) !== 0) {
          const error = this.createError(RangeError, "RSV2 and RSV3 must be clear", true, 1002, "WS_ERR_UNEXPECTED_RSV_2_3");
          cb(error);
          return;
        }
        const compressed = (buf[0] & 64) === 64;
        if (compressed && !this._extensions[PerMessageDeflate2.extensionName]) {
          const error = this.createError(RangeError, "RSV1 must be clear", true, 1002, "WS_ERR_UNEXPECTED_RSV_1");
          cb(error);
          return;
        }
        this._fin = (buf[0] & 128) === 128;
        this._opcode = buf[0] & 15;
        this._payloadLength = buf[1] & 127;
        if (this._opcode === 0) {
          if (compressed) {
            const error = this.createError(RangeError, "RSV1 must be clear", true, 1002, "WS_ERR_UNEXPECTED_RSV_1");
            cb(error);
            return;
          }
          if (!this._fragmented) {
            const error = this.createError(RangeError, "invalid opcode 0", true, 1002, "WS_ERR_INVALID_OPCODE");
            cb(error);
            return;
          }
          this._opcode = this._fragmented;
        } else if (this._opcode === 1 || this._opcode === 2) {
          if (this._fragmented) {
            const error = this.createError(RangeError, `invalid opcode ${this._opcode}`, true, 1002, "WS_ERR_INVALID_OPCODE");
            cb(error);
            return;
          }
          this._compressed = compressed;
        } else if (this._opcode > 7 && this._opcode < 11) {
          if (!this._fin) {
            const error = this.createError(RangeError, "FIN must be set", true, 1002, "WS_ERR_EXPECTED_FIN");
            cb(error);
            return;
          }
          if (compressed) {
            const error = this.createError(RangeError, "RSV1 must be clear", true, 1002, "WS_ERR_UNEXPECTED_RSV_1");
            cb(error);
            return;
          }
          if (this._payloadLength > 125 || this._opcode === 8 && this._payloadLength === 1) {
            const error = this.createError(RangeError, `invalid payload length ${this._payloadLength}`, true, 1002, "WS_ERR_INVALID_CONTROL_PAYLOAD_LENGTH");
            cb(error);
            return;
          }
        } else {
          const error = this.createError(RangeError, `invalid opcode ${this._opcode}`, true, 1002, "WS_ERR_INVALID_OPCODE");
          cb(error);
          return;
        }
        if (!this._fin && !this._fragmented) this._fragmented = this._opcode;
        this._masked = (buf[1] & 128) === 128;
        if (this._isServer) {
          if (!this._masked) {
            const error = this.createError(RangeError, "MASK must be set", true, 1002, "WS_ERR_EXPECTED_MASK");
            cb(error);
            return;
          }
        } else if (this._masked) {
          const error = this.createError(RangeError, "MASK must be clear", true, 1002, "WS_ERR_UNEXPECTED_MASK");
          cb(error);
          return;
        }
        if (this._payloadLength === 126) this._state = GET_PAYLOAD_LENGTH_16;
        else if (this._payloadLength === 127) this._state = GET_PAYLOAD_LENGTH_64;
        else this.haveLength(cb);
      }
      /**
       * Gets extended payload length (7+16).
       *
       * @param {Function} cb Callback
       * @private
       */
      getPayloadLength16(cb) {
        if (this._bufferedBytes < 2) {
          this._loop = false;
          return;
        }
        this._payloadLength = this.consume(2).readUInt16BE(0);
        this.haveLength(cb);
      }
      /**
       * Gets extended payload length (7+64).
       *
       * @param {Function} cb Callback
       * @private
       */
      getPayloadLength64(cb) {
        if (this._bufferedBytes < 8) {
          this._loop = false;
          return;
        }
        const buf = this.consume(8);
        const num = buf.readUInt32BE(0);
        if (num > Math.pow(2, 53 - 32) - 1) {
          const error = this.createError(RangeError, "Unsupported WebSocket frame: payload length > 2^53 - 1", false, 1009, "WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH");
          cb(error);
          return;
        }
        this._payloadLength = num * Math.pow(2, 32) + buf.readUInt32BE(4);
        this.haveLength(cb);
      }
      /**
       * Payload length has been read.
       *
       * @param {Function} cb Callback
       * @private
       */
      haveLength(cb) {
        if (this._payloadLength && this._opcode < 8) {
          this._totalPayloadLength += this._payloadLength;
          if (this._totalPayloadLength > this._maxPayload && this._maxPayload > 0) {
            const error = this.createError(RangeError, "Max payload size exceeded", false, 1009, "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH");
            cb(error);
            return;
          }
        }
        if (this._masked) this._state = GET_MASK;
        else this._state = GET_DATA;
      }
      /**
       * Reads mask bytes.
       *
       * @private
       */
      getMask() {
        if (this._bufferedBytes < 4) {
          this._loop = false;
          return;
        }
        this._mask = this.consume(4);
        this._state = GET_DATA;
      }
      /**
       * Reads data bytes.
       *
       * @param {Function} cb Callback
       * @private
       */
      getData(cb) {
        let data = EMPTY_BUFFER;
        if (this._payloadLength) {
          if (this._bufferedBytes < this._payloadLength) {
            this._loop = false;
            return;
          }
          data = this.consume(this._payloadLength);
          if (this._masked && (this._mask[0] | this._mask[1] | this._mask[2] | this._mask[3]) !== 0) {
            unmask(data, this._mask);
          }
        }
        this._mask = void 0;
        if (this._opcode > 7) {
          this.controlMessage(data, cb);
          return;
        }
        if (this._maxFragments > 0 && ++this._numFragments > this._maxFragments) {
          const error = this.createError(RangeError, "Too many message fragments", false, 1008, "WS_ERR_TOO_MANY_BUFFERED_PARTS");
          cb(error);
          return;
        }
        if (this._compressed) {
          this._state = INFLATING;
          this.decompress(data, cb);
          return;
        }
        if (data.length) {
          this._messageLength = this._totalPayloadLength;
          this._fragments.push(data);
        }
        this.dataMessage(cb);
      }
      /**
       * Decompresses data.
       *
       * @param {Buffer} data Compressed data
       * @param {Function} cb Callback
       * @private
       */
      decompress(data, cb) {
        const perMessageDeflate = this._extensions[PerMessageDeflate2.extensionName];
        perMessageDeflate.decompress(data, this._fin, (err, buf) => {
          if (err) return cb(err);
          if (buf.length) {
            this._messageLength += buf.length;
            if (this._messageLength > this._maxPayload && this._maxPayload > 0) {
              const error = this.createError(RangeError, "Max payload size exceeded", false, 1009, "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH");
              cb(error);
              return;
            }
            this._fragments.push(buf);
          }
          this.dataMessage(cb);
          if (this._state === GET_INFO) this.startLoop(cb);
        });
      }
      /**
       * Handles a data message.
       *
       * @param {Function} cb Callback
       * @private
       */
      dataMessage(cb) {
        if (!this._fin) {
          this._state = GET_INFO;
          return;
        }
        const messageLength = this._messageLength;
        const fragments = this._fragments;
        this._totalPayloadLength = 0;
        this._messageLength = 0;
        this._fragmented = 0;
        this._numFragments = 0;
        this._fragments = [];
        if (this._opcode === 2) {
          let data;
          if (this._binaryType === "nodebuffer") {
            data = concat(fragments, messageLength);
          } else if (this._binaryType === "arraybuffer") {
            data = toArrayBuffer(concat(fragments, messageLength));
          } else if (this._binaryType === "blob") {
            data = new Blob(fragments);
          } else {
            data = fragments;
          }
          if (this._allowSynchronousEvents) {
            this.emit("message", data, true);
            this._state = GET_INFO;
          } else {
            this._state = DEFER_EVENT;
            setImmediate(() => {
              this.emit("message", data, true);
              this._state = GET_INFO;
              this.startLoop(cb);
            });
          }
        } else {
          const buf = concat(fragments, messageLength);
          if (!this._skipUTF8Validation && !isValidUTF8(buf)) {
            const error = this.createError(Error, "invalid UTF-8 sequence", true, 1007, "WS_ERR_INVALID_UTF8");
            cb(error);
            return;
          }
          if (this._state === INFLATING || this._allowSynchronousEvents) {
            this.emit("message", buf, false);
            this._state = GET_INFO;
          } else {
            this._state = DEFER_EVENT;
            setImmediate(() => {
              this.emit("message", buf, false);
              this._state = GET_INFO;
              this.startLoop(cb);
            });
          }
        }
      }
      /**
       * Handles a control message.
       *
       * @param {Buffer} data Data to handle
       * @return {(Error|RangeError|undefined)} A possible error
       * @private
       */
      controlMessage(data, cb) {
        if (this._opcode === 8) {
          if (data.length === 0) {
            this._loop = false;
            this.emit("conclude", 1005, EMPTY_BUFFER);
            this.end();
          } else {
            const code = data.readUInt16BE(0);
            if (!isValidStatusCode(code)) {
              const error = this.createError(RangeError, `invalid status code ${code}`, true, 1002, "WS_ERR_INVALID_CLOSE_CODE");
              cb(error);
              return;
            }
            const buf = new FastBuffer(data.buffer, data.byteOffset + 2, data.length - 2);
            if (!this._skipUTF8Validation && !isValidUTF8(buf)) {
              const error = this.createError(Error, "invalid UTF-8 sequence", true, 1007, "WS_ERR_INVALID_UTF8");
              cb(error);
              return;
            }
            this._loop = false;
            this.emit("conclude", code, buf);
            this.end();
          }
          this._state = GET_INFO;
          return;
        }
        if (this._allowSynchronousEvents) {
          this.emit(this._opcode === 9 ? "ping" : "pong", data);
          this._state = GET_INFO;
        } else {
          this._state = DEFER_EVENT;
          setImmediate(() => {
            this.emit(this._opcode === 9 ? "ping" : "pong", data);
            this._state = GET_INFO;
            this.startLoop(cb);
          });
        }
      }
      /**
       * Builds an error object.
       *
       * @param {function(new:Error|RangeError)} ErrorCtor The error constructor
       * @param {String} message The error message
       * @param {Boolean} prefix Specifies whether or not to add a default prefix to
       *     `message`
       * @param {Number} statusCode The status code
       * @param {String} errorCode The exposed error code
       * @return {(Error|RangeError)} The error
       * @private
       */
      createError(ErrorCtor, message, prefix, statusCode, errorCode) {
        this._loop = false;
        this._errored = true;
        const err = new ErrorCtor(prefix ? `Invalid WebSocket frame: ${message}` : message);
        Error.captureStackTrace(err, this.createError);
        err.code = errorCode;
        err[kStatusCode] = statusCode;
        return err;
      }
    };
    module.exports = Receiver2;
  }
});

// npm/ws/8.23.0/lib/sender.js
var require_sender = __commonJS({
  "npm/ws/8.23.0/lib/sender.js"(exports, module) {
    "use strict";
    var { Duplex } = __require("node:stream");
    var { randomFillSync } = __require("node:crypto");
    var { types: { isUint8Array } } = __require("node:util");
    var PerMessageDeflate2 = require_permessage_deflate();
    var { EMPTY_BUFFER, kWebSocket, NOOP } = require_constants();
    var { isBlob, isValidStatusCode } = require_validation();
    var { mask: applyMask, toBuffer } = require_buffer_util();
    var kByteLength = Symbol("kByteLength");
    var maskBuffer = Buffer.alloc(4);
    var RANDOM_POOL_SIZE = 8 * 1024;
    var randomPool;
    var randomPoolPointer = RANDOM_POOL_SIZE;
    var DEFAULT = 0;
    var DEFLATING = 1;
    var GET_BLOB_DATA = 2;
    var Sender2 = class _Sender {
      /**
       * Creates a Sender instance.
       *
       * @param {Duplex} socket The connection socket
       * @param {Object} [extensions] An object containing the negotiated extensions
       * @param {Function} [generateMask] The function used to generate the masking
       *     key
       */
      constructor(socket, extensions, generateMask) {
        this._extensions = extensions || {};
        if (generateMask) {
          this._generateMask = generateMask;
          this._maskBuffer = Buffer.alloc(4);
        }
        this._socket = socket;
        this._firstFragment = true;
        this._compress = false;
        this._bufferedBytes = 0;
        this._queue = [];
        this._state = DEFAULT;
        this.onerror = NOOP;
        this[kWebSocket] = void 0;
      }
      /**
       * Frames a piece of data according to the HyBi WebSocket protocol.
       *
       * @param {(Buffer|String)} data The data to frame
       * @param {Object} options Options object
       * @param {Boolean} [options.fin=false] Specifies whether or not to set the
       *     FIN bit
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Buffer} [options.maskBuffer] The buffer used to store the masking
       *     key
       * @param {Number} options.opcode The opcode
       * @param {Boolean} [options.readOnly=false] Specifies whether `data` can be
       *     modified
       * @param {Boolean} [options.rsv1=false] Specifies whether or not to set the
       *     RSV1 bit
       * @return {(Buffer|String)[]} The framed data
       * @public
       */
      static frame(data, options) {
        let mask;
        let merge = false;
        let offset = 2;
        let skipMasking = false;
        if (options.mask) {
          mask = options.maskBuffer || maskBuffer;
          if (options.generateMask) {
            options.generateMask(mask);
          } else {
            if (randomPoolPointer === RANDOM_POOL_SIZE) {
              if (randomPool === void 0) {
                randomPool = Buffer.alloc(RANDOM_POOL_SIZE);
              }
              randomFillSync(randomPool, 0, RANDOM_POOL_SIZE);
              randomPoolPointer = 0;
            }
            mask[0] = randomPool[randomPoolPointer++];
            mask[1] = randomPool[randomPoolPointer++];
            mask[2] = randomPool[randomPoolPointer++];
            mask[3] = randomPool[randomPoolPointer++];
          }
          skipMasking = (mask[0] | mask[1] | mask[2] | mask[3]) === 0;
          offset = 6;
        }
        let dataLength;
        if (typeof data === "string") {
          if ((!options.mask || skipMasking) && options[kByteLength] !== void 0) {
            dataLength = options[kByteLength];
          } else {
            data = Buffer.from(data);
            dataLength = data.length;
          }
        } else {
          dataLength = data.length;
          merge = options.mask && options.readOnly && !skipMasking;
        }
        let payloadLength = dataLength;
        if (dataLength >= 65536) {
          offset += 8;
          payloadLength = 127;
        } else if (dataLength > 125) {
          offset += 2;
          payloadLength = 126;
        }
        const target = Buffer.allocUnsafe(merge ? dataLength + offset : offset);
        target[0] = options.fin ? options.opcode | 128 : options.opcode;
        if (options.rsv1) target[0] |= 64;
        target[1] = payloadLength;
        if (payloadLength === 126) {
          target.writeUInt16BE(dataLength, 2);
        } else if (payloadLength === 127) {
          target[2] = target[3] = 0;
          target.writeUIntBE(dataLength, 4, 6);
        }
        if (!options.mask) {
          return dataLength ? [
            target,
            data
          ] : [
            target
          ];
        }
        target[1] |= 128;
        target[offset - 4] = mask[0];
        target[offset - 3] = mask[1];
        target[offset - 2] = mask[2];
        target[offset - 1] = mask[3];
        if (!dataLength) return [
          target
        ];
        if (skipMasking) return [
          target,
          data
        ];
        if (merge) {
          applyMask(data, mask, target, offset, dataLength);
          return [
            target
          ];
        }
        applyMask(data, mask, data, 0, dataLength);
        return [
          target,
          data
        ];
      }
      /**
       * Sends a close message to the other peer.
       *
       * @param {Number} [code] The status code component of the body
       * @param {(String|Buffer)} [data] The message component of the body
       * @param {Boolean} [mask=false] Specifies whether or not to mask the message
       * @param {Function} [cb] Callback
       * @public
       */
      close(code, data, mask, cb) {
        let buf;
        if (code === void 0) {
          buf = EMPTY_BUFFER;
        } else if (typeof code !== "number" || !isValidStatusCode(code)) {
          throw new TypeError("First argument must be a valid error code number");
        } else if (data === void 0 || !data.length) {
          buf = Buffer.allocUnsafe(2);
          buf.writeUInt16BE(code, 0);
        } else {
          const length = Buffer.byteLength(data);
          if (length > 123) {
            throw new RangeError("The message must not be greater than 123 bytes");
          }
          buf = Buffer.allocUnsafe(2 + length);
          buf.writeUInt16BE(code, 0);
          if (typeof data === "string") {
            buf.write(data, 2);
          } else if (isUint8Array(data)) {
            buf.set(data, 2);
          } else {
            throw new TypeError("Second argument must be a string or a Uint8Array");
          }
        }
        const options = {
          [kByteLength]: buf.length,
          fin: true,
          generateMask: this._generateMask,
          mask,
          maskBuffer: this._maskBuffer,
          opcode: 8,
          readOnly: false,
          rsv1: false
        };
        if (this._state !== DEFAULT) {
          this.enqueue([
            this.dispatch,
            buf,
            false,
            options,
            cb
          ]);
        } else {
          this.sendFrame(_Sender.frame(buf, options), cb);
        }
      }
      /**
       * Sends a ping message to the other peer.
       *
       * @param {*} data The message to send
       * @param {Boolean} [mask=false] Specifies whether or not to mask `data`
       * @param {Function} [cb] Callback
       * @public
       */
      ping(data, mask, cb) {
        let byteLength;
        let readOnly;
        if (typeof data === "string") {
          byteLength = Buffer.byteLength(data);
          readOnly = false;
        } else if (isBlob(data)) {
          byteLength = data.size;
          readOnly = false;
        } else {
          data = toBuffer(data);
          byteLength = data.length;
          readOnly = toBuffer.readOnly;
        }
        if (byteLength > 125) {
          throw new RangeError("The data size must not be greater than 125 bytes");
        }
        const options = {
          [kByteLength]: byteLength,
          fin: true,
          generateMask: this._generateMask,
          mask,
          maskBuffer: this._maskBuffer,
          opcode: 9,
          readOnly,
          rsv1: false
        };
        if (isBlob(data)) {
          if (this._state !== DEFAULT) {
            this.enqueue([
              this.getBlobData,
              data,
              false,
              options,
              cb
            ]);
          } else {
            this.getBlobData(data, false, options, cb);
          }
        } else if (this._state !== DEFAULT) {
          this.enqueue([
            this.dispatch,
            data,
            false,
            options,
            cb
          ]);
        } else {
          this.sendFrame(_Sender.frame(data, options), cb);
        }
      }
      /**
       * Sends a pong message to the other peer.
       *
       * @param {*} data The message to send
       * @param {Boolean} [mask=false] Specifies whether or not to mask `data`
       * @param {Function} [cb] Callback
       * @public
       */
      pong(data, mask, cb) {
        let byteLength;
        let readOnly;
        if (typeof data === "string") {
          byteLength = Buffer.byteLength(data);
          readOnly = false;
        } else if (isBlob(data)) {
          byteLength = data.size;
          readOnly = false;
        } else {
          data = toBuffer(data);
          byteLength = data.length;
          readOnly = toBuffer.readOnly;
        }
        if (byteLength > 125) {
          throw new RangeError("The data size must not be greater than 125 bytes");
        }
        const options = {
          [kByteLength]: byteLength,
          fin: true,
          generateMask: this._generateMask,
          mask,
          maskBuffer: this._maskBuffer,
          opcode: 10,
          readOnly,
          rsv1: false
        };
        if (isBlob(data)) {
          if (this._state !== DEFAULT) {
            this.enqueue([
              this.getBlobData,
              data,
              false,
              options,
              cb
            ]);
          } else {
            this.getBlobData(data, false, options, cb);
          }
        } else if (this._state !== DEFAULT) {
          this.enqueue([
            this.dispatch,
            data,
            false,
            options,
            cb
          ]);
        } else {
          this.sendFrame(_Sender.frame(data, options), cb);
        }
      }
      /**
       * Sends a data message to the other peer.
       *
       * @param {*} data The message to send
       * @param {Object} options Options object
       * @param {Boolean} [options.binary=false] Specifies whether `data` is binary
       *     or text
       * @param {Boolean} [options.compress=false] Specifies whether or not to
       *     compress `data`
       * @param {Boolean} [options.fin=false] Specifies whether the fragment is the
       *     last one
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Function} [cb] Callback
       * @public
       */
      send(data, options, cb) {
        const perMessageDeflate = this._extensions[PerMessageDeflate2.extensionName];
        let opcode = options.binary ? 2 : 1;
        let rsv1 = options.compress;
        let byteLength;
        let readOnly;
        if (typeof data === "string") {
          byteLength = Buffer.byteLength(data);
          readOnly = false;
        } else if (isBlob(data)) {
          byteLength = data.size;
          readOnly = false;
        } else {
          data = toBuffer(data);
          byteLength = data.length;
          readOnly = toBuffer.readOnly;
        }
        if (this._firstFragment) {
          this._firstFragment = false;
          if (rsv1 && perMessageDeflate && perMessageDeflate.params[perMessageDeflate._isServer ? "server_no_context_takeover" : "client_no_context_takeover"]) {
            rsv1 = byteLength >= perMessageDeflate._threshold;
          }
          this._compress = rsv1;
        } else {
          rsv1 = false;
          opcode = 0;
        }
        if (options.fin) this._firstFragment = true;
        const opts = {
          [kByteLength]: byteLength,
          fin: options.fin,
          generateMask: this._generateMask,
          mask: options.mask,
          maskBuffer: this._maskBuffer,
          opcode,
          readOnly,
          rsv1
        };
        if (isBlob(data)) {
          if (this._state !== DEFAULT) {
            this.enqueue([
              this.getBlobData,
              data,
              this._compress,
              opts,
              cb
            ]);
          } else {
            this.getBlobData(data, this._compress, opts, cb);
          }
        } else if (this._state !== DEFAULT) {
          this.enqueue([
            this.dispatch,
            data,
            this._compress,
            opts,
            cb
          ]);
        } else {
          this.dispatch(data, this._compress, opts, cb);
        }
      }
      /**
       * Gets the contents of a blob as binary data.
       *
       * @param {Blob} blob The blob
       * @param {Boolean} [compress=false] Specifies whether or not to compress
       *     the data
       * @param {Object} options Options object
       * @param {Boolean} [options.fin=false] Specifies whether or not to set the
       *     FIN bit
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Buffer} [options.maskBuffer] The buffer used to store the masking
       *     key
       * @param {Number} options.opcode The opcode
       * @param {Boolean} [options.readOnly=false] Specifies whether `data` can be
       *     modified
       * @param {Boolean} [options.rsv1=false] Specifies whether or not to set the
       *     RSV1 bit
       * @param {Function} [cb] Callback
       * @private
       */
      getBlobData(blob, compress, options, cb) {
        this._bufferedBytes += options[kByteLength];
        this._state = GET_BLOB_DATA;
        blob.arrayBuffer().then((arrayBuffer) => {
          if (this._socket.destroyed) {
            const err = new Error("The socket was closed while the blob was being read");
            process.nextTick(callCallbacks, this, err, cb);
            return;
          }
          this._bufferedBytes -= options[kByteLength];
          const data = toBuffer(arrayBuffer);
          if (!compress) {
            this._state = DEFAULT;
            this.sendFrame(_Sender.frame(data, options), cb);
            this.dequeue();
          } else {
            this.dispatch(data, compress, options, cb);
          }
        }).catch((err) => {
          process.nextTick(onError, this, err, cb);
        });
      }
      /**
       * Dispatches a message.
       *
       * @param {(Buffer|String)} data The message to send
       * @param {Boolean} [compress=false] Specifies whether or not to compress
       *     `data`
       * @param {Object} options Options object
       * @param {Boolean} [options.fin=false] Specifies whether or not to set the
       *     FIN bit
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Boolean} [options.mask=false] Specifies whether or not to mask
       *     `data`
       * @param {Buffer} [options.maskBuffer] The buffer used to store the masking
       *     key
       * @param {Number} options.opcode The opcode
       * @param {Boolean} [options.readOnly=false] Specifies whether `data` can be
       *     modified
       * @param {Boolean} [options.rsv1=false] Specifies whether or not to set the
       *     RSV1 bit
       * @param {Function} [cb] Callback
       * @private
       */
      dispatch(data, compress, options, cb) {
        if (!compress) {
          this.sendFrame(_Sender.frame(data, options), cb);
          return;
        }
        const perMessageDeflate = this._extensions[PerMessageDeflate2.extensionName];
        this._bufferedBytes += options[kByteLength];
        this._state = DEFLATING;
        perMessageDeflate.compress(data, options.fin, (_, buf) => {
          if (this._socket.destroyed) {
            const err = new Error("The socket was closed while data was being compressed");
            callCallbacks(this, err, cb);
            return;
          }
          this._bufferedBytes -= options[kByteLength];
          this._state = DEFAULT;
          options.readOnly = false;
          this.sendFrame(_Sender.frame(buf, options), cb);
          this.dequeue();
        });
      }
      /**
       * Executes queued send operations.
       *
       * @private
       */
      dequeue() {
        while (this._state === DEFAULT && this._queue.length) {
          const params = this._queue.shift();
          this._bufferedBytes -= params[3][kByteLength];
          Reflect.apply(params[0], this, params.slice(1));
        }
      }
      /**
       * Enqueues a send operation.
       *
       * @param {Array} params Send operation parameters.
       * @private
       */
      enqueue(params) {
        this._bufferedBytes += params[3][kByteLength];
        this._queue.push(params);
      }
      /**
       * Sends a frame.
       *
       * @param {(Buffer | String)[]} list The frame to send
       * @param {Function} [cb] Callback
       * @private
       */
      sendFrame(list, cb) {
        if (list.length === 2) {
          this._socket.cork();
          this._socket.write(list[0]);
          this._socket.write(list[1], cb);
          this._socket.uncork();
        } else {
          this._socket.write(list[0], cb);
        }
      }
    };
    module.exports = Sender2;
    function callCallbacks(sender, err, cb) {
      if (typeof cb === "function") cb(err);
      for (let i = 0; i < sender._queue.length; i++) {
        const params = sender._queue[i];
        const callback = params[params.length - 1];
        if (typeof callback === "function") callback(err);
      }
    }
    function onError(sender, err, cb) {
      callCallbacks(sender, err, cb);
      sender.onerror(err);
    }
  }
});

// npm/ws/8.23.0/lib/event-target.js
var require_event_target = __commonJS({
  "npm/ws/8.23.0/lib/event-target.js"(exports, module) {
    "use strict";
    var { kForOnEventAttribute, kListener } = require_constants();
    var kCode = Symbol("kCode");
    var kData = Symbol("kData");
    var kError = Symbol("kError");
    var kMessage = Symbol("kMessage");
    var kReason = Symbol("kReason");
    var kTarget = Symbol("kTarget");
    var kType = Symbol("kType");
    var kWasClean = Symbol("kWasClean");
    var Event = class {
      /**
       * Create a new `Event`.
       *
       * @param {String} type The name of the event
       * @throws {TypeError} If the `type` argument is not specified
       */
      constructor(type) {
        this[kTarget] = null;
        this[kType] = type;
      }
      /**
       * @type {*}
       */
      get target() {
        return this[kTarget];
      }
      /**
       * @type {String}
       */
      get type() {
        return this[kType];
      }
    };
    Object.defineProperty(Event.prototype, "target", {
      enumerable: true
    });
    Object.defineProperty(Event.prototype, "type", {
      enumerable: true
    });
    var CloseEvent = class extends Event {
      /**
       * Create a new `CloseEvent`.
       *
       * @param {String} type The name of the event
       * @param {Object} [options] A dictionary object that allows for setting
       *     attributes via object members of the same name
       * @param {Number} [options.code=0] The status code explaining why the
       *     connection was closed
       * @param {String} [options.reason=''] A human-readable string explaining why
       *     the connection was closed
       * @param {Boolean} [options.wasClean=false] Indicates whether or not the
       *     connection was cleanly closed
       */
      constructor(type, options = {}) {
        super(type);
        this[kCode] = options.code === void 0 ? 0 : options.code;
        this[kReason] = options.reason === void 0 ? "" : options.reason;
        this[kWasClean] = options.wasClean === void 0 ? false : options.wasClean;
      }
      /**
       * @type {Number}
       */
      get code() {
        return this[kCode];
      }
      /**
       * @type {String}
       */
      get reason() {
        return this[kReason];
      }
      /**
       * @type {Boolean}
       */
      get wasClean() {
        return this[kWasClean];
      }
    };
    Object.defineProperty(CloseEvent.prototype, "code", {
      enumerable: true
    });
    Object.defineProperty(CloseEvent.prototype, "reason", {
      enumerable: true
    });
    Object.defineProperty(CloseEvent.prototype, "wasClean", {
      enumerable: true
    });
    var ErrorEvent = class extends Event {
      /**
       * Create a new `ErrorEvent`.
       *
       * @param {String} type The name of the event
       * @param {Object} [options] A dictionary object that allows for setting
       *     attributes via object members of the same name
       * @param {*} [options.error=null] The error that generated this event
       * @param {String} [options.message=''] The error message
       */
      constructor(type, options = {}) {
        super(type);
        this[kError] = options.error === void 0 ? null : options.error;
        this[kMessage] = options.message === void 0 ? "" : options.message;
      }
      /**
       * @type {*}
       */
      get error() {
        return this[kError];
      }
      /**
       * @type {String}
       */
      get message() {
        return this[kMessage];
      }
    };
    Object.defineProperty(ErrorEvent.prototype, "error", {
      enumerable: true
    });
    Object.defineProperty(ErrorEvent.prototype, "message", {
      enumerable: true
    });
    var MessageEvent = class extends Event {
      /**
       * Create a new `MessageEvent`.
       *
       * @param {String} type The name of the event
       * @param {Object} [options] A dictionary object that allows for setting
       *     attributes via object members of the same name
       * @param {*} [options.data=null] The message content
       */
      constructor(type, options = {}) {
        super(type);
        this[kData] = options.data === void 0 ? null : options.data;
      }
      /**
       * @type {*}
       */
      get data() {
        return this[kData];
      }
    };
    Object.defineProperty(MessageEvent.prototype, "data", {
      enumerable: true
    });
    var EventTarget = {
      /**
       * Register an event listener.
       *
       * @param {String} type A string representing the event type to listen for
       * @param {(Function|Object)} handler The listener to add
       * @param {Object} [options] An options object specifies characteristics about
       *     the event listener
       * @param {Boolean} [options.once=false] A `Boolean` indicating that the
       *     listener should be invoked at most once after being added. If `true`,
       *     the listener would be automatically removed when invoked.
       * @public
       */
      addEventListener(type, handler, options = {}) {
        for (const listener of this.listeners(type)) {
          if (!options[kForOnEventAttribute] && listener[kListener] === handler && !listener[kForOnEventAttribute]) {
            return;
          }
        }
        let wrapper;
        if (type === "message") {
          wrapper = function onMessage(data, isBinary) {
            const event = new MessageEvent("message", {
              data: isBinary ? data : data.toString()
            });
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else if (type === "close") {
          wrapper = function onClose(code, message) {
            const event = new CloseEvent("close", {
              code,
              reason: message.toString(),
              wasClean: this._closeFrameReceived && this._closeFrameSent
            });
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else if (type === "error") {
          wrapper = function onError(error) {
            const event = new ErrorEvent("error", {
              error,
              message: error.message
            });
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else if (type === "open") {
          wrapper = function onOpen() {
            const event = new Event("open");
            event[kTarget] = this;
            callListener(handler, this, event);
          };
        } else {
          return;
        }
        wrapper[kForOnEventAttribute] = !!options[kForOnEventAttribute];
        wrapper[kListener] = handler;
        if (options.once) {
          this.once(type, wrapper);
        } else {
          this.on(type, wrapper);
        }
      },
      /**
       * Remove an event listener.
       *
       * @param {String} type A string representing the event type to remove
       * @param {(Function|Object)} handler The listener to remove
       * @public
       */
      removeEventListener(type, handler) {
        for (const listener of this.listeners(type)) {
          if (listener[kListener] === handler && !listener[kForOnEventAttribute]) {
            this.removeListener(type, listener);
            break;
          }
        }
      }
    };
    module.exports = {
      CloseEvent,
      ErrorEvent,
      Event,
      EventTarget,
      MessageEvent
    };
    function callListener(listener, thisArg, event) {
      if (typeof listener === "object" && listener.handleEvent) {
        listener.handleEvent.call(listener, event);
      } else {
        listener.call(thisArg, event);
      }
    }
  }
});

// npm/ws/8.23.0/lib/extension.js
var require_extension = __commonJS({
  "npm/ws/8.23.0/lib/extension.js"(exports, module) {
    "use strict";
    var { tokenChars } = require_validation();
    function push(dest, name, elem) {
      if (dest[name] === void 0) dest[name] = [
        elem
      ];
      else dest[name].push(elem);
    }
    function parse(header) {
      const offers = /* @__PURE__ */ Object.create(null);
      let params = /* @__PURE__ */ Object.create(null);
      let mustUnescape = false;
      let isEscaping = false;
      let inQuotes = false;
      let extensionName;
      let paramName;
      let start = -1;
      let code = -1;
      let end3 = -1;
      let i = 0;
      for (; i < header.length; i++) {
        code = header.charCodeAt(i);
        if (extensionName === void 0) {
          if (end3 === -1 && tokenChars[code] === 1) {
            if (start === -1) start = i;
          } else if (i !== 0 && (code === 32 || code === 9)) {
            if (end3 === -1 && start !== -1) end3 = i;
          } else if (code === 59 || code === 44) {
            if (start === -1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (end3 === -1) end3 = i;
            const name = header.slice(start, end3);
            if (code === 44) {
              push(offers, name, params);
              params = /* @__PURE__ */ Object.create(null);
            } else {
              extensionName = name;
            }
            start = end3 = -1;
          } else {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
        } else if (paramName === void 0) {
          if (end3 === -1 && tokenChars[code] === 1) {
            if (start === -1) start = i;
          } else if (code === 32 || code === 9) {
            if (end3 === -1 && start !== -1) end3 = i;
          } else if (code === 59 || code === 44) {
            if (start === -1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (end3 === -1) end3 = i;
            push(params, header.slice(start, end3), true);
            if (code === 44) {
              push(offers, extensionName, params);
              params = /* @__PURE__ */ Object.create(null);
              extensionName = void 0;
            }
            start = end3 = -1;
          } else if (code === 61 && start !== -1 && end3 === -1) {
            paramName = header.slice(start, i);
            start = end3 = -1;
          } else {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
        } else {
          if (isEscaping) {
            if (tokenChars[code] !== 1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (start === -1) start = i;
            else if (!mustUnescape) mustUnescape = true;
            isEscaping = false;
          } else if (inQuotes) {
            if (tokenChars[code] === 1) {
              if (start === -1) start = i;
            } else if (code === 34 && start !== -1) {
              inQuotes = false;
              end3 = i;
            } else if (code === 92) {
              isEscaping = true;
            } else {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
          } else if (code === 34 && header.charCodeAt(i - 1) === 61) {
            inQuotes = true;
          } else if (end3 === -1 && tokenChars[code] === 1) {
            if (start === -1) start = i;
          } else if (start !== -1 && (code === 32 || code === 9)) {
            if (end3 === -1) end3 = i;
          } else if (code === 59 || code === 44) {
            if (start === -1) {
              throw new SyntaxError(`Unexpected character at index ${i}`);
            }
            if (end3 === -1) end3 = i;
            let value = header.slice(start, end3);
            if (mustUnescape) {
              value = value.replace(/\\/g, "");
              mustUnescape = false;
            }
            push(params, paramName, value);
            if (code === 44) {
              push(offers, extensionName, params);
              params = /* @__PURE__ */ Object.create(null);
              extensionName = void 0;
            }
            paramName = void 0;
            start = end3 = -1;
          } else {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
        }
      }
      if (start === -1 || inQuotes || code === 32 || code === 9) {
        throw new SyntaxError("Unexpected end of input");
      }
      if (end3 === -1) end3 = i;
      const token = header.slice(start, end3);
      if (extensionName === void 0) {
        push(offers, token, params);
      } else {
        if (paramName === void 0) {
          push(params, token, true);
        } else if (mustUnescape) {
          push(params, paramName, token.replace(/\\/g, ""));
        } else {
          push(params, paramName, token);
        }
        push(offers, extensionName, params);
      }
      return offers;
    }
    function format(extensions) {
      return Object.keys(extensions).map((extension2) => {
        let configurations = extensions[extension2];
        if (!Array.isArray(configurations)) configurations = [
          configurations
        ];
        return configurations.map((params) => {
          return [
            extension2
          ].concat(Object.keys(params).map((k) => {
            let values = params[k];
            if (!Array.isArray(values)) values = [
              values
            ];
            return values.map((v) => v === true ? k : `${k}=${v}`).join("; ");
          })).join("; ");
        }).join(", ");
      }).join(", ");
    }
    module.exports = {
      format,
      parse
    };
  }
});

// npm/ws/8.23.0/lib/websocket.js
var require_websocket = __commonJS({
  "npm/ws/8.23.0/lib/websocket.js"(exports, module) {
    "use strict";
    var EventEmitter = __require("node:events");
    var https = __require("node:https");
    var http = __require("node:http");
    var net = __require("node:net");
    var querystring = __require("node:querystring");
    var tls = __require("node:tls");
    var { randomBytes, createHash } = __require("node:crypto");
    var { Duplex, Readable } = __require("node:stream");
    var { URL: URL2 } = __require("node:url");
    var PerMessageDeflate2 = require_permessage_deflate();
    var Receiver2 = require_receiver();
    var Sender2 = require_sender();
    var { isBlob } = require_validation();
    var { BINARY_TYPES, CLOSE_TIMEOUT, EMPTY_BUFFER, GUID, kForOnEventAttribute, kListener, kStatusCode, kWebSocket, NOOP } = require_constants();
    var { EventTarget: { addEventListener, removeEventListener } } = require_event_target();
    var { format, parse } = require_extension();
    var { toBuffer } = require_buffer_util();
    var kAborted = Symbol("kAborted");
    var protocolVersions = [
      8,
      13
    ];
    var readyStates = [
      "CONNECTING",
      "OPEN",
      "CLOSING",
      "CLOSED"
    ];
    var subprotocolRegex = /^[!#$%&'*+\-.0-9A-Z^_`|a-z~]+$/;
    var WebSocket3 = class _WebSocket extends EventEmitter {
      /**
       * Create a new `WebSocket`.
       *
       * @param {(String|URL)} address The URL to which to connect
       * @param {(String|String[])} [protocols] The subprotocols
       * @param {Object} [options] Connection options
       */
      constructor(address, protocols, options) {
        super();
        this._binaryType = BINARY_TYPES[0];
        this._closeCode = 1006;
        this._closeFrameReceived = false;
        this._closeFrameSent = false;
        this._closeMessage = EMPTY_BUFFER;
        this._closeTimer = null;
        this._errorEmitted = false;
        this._extensions = {};
        this._paused = false;
        this._protocol = "";
        this._readyState = _WebSocket.CONNECTING;
        this._receiver = null;
        this._sender = null;
        this._socket = null;
        if (address !== null) {
          this._bufferedAmount = 0;
          this._isServer = false;
          this._redirects = 0;
          if (protocols === void 0) {
            if (!options || options.protocols === void 0) {
              protocols = [];
            } else if (Array.isArray(options.protocols)) {
              protocols = options.protocols;
            } else {
              protocols = [
                options.protocols
              ];
            }
          } else if (!Array.isArray(protocols)) {
            if (typeof protocols === "object" && protocols !== null) {
              options = protocols;
              if (options.protocols === void 0) {
                protocols = [];
              } else if (Array.isArray(options.protocols)) {
                protocols = options.protocols;
              } else {
                protocols = [
                  options.protocols
                ];
              }
            } else {
              protocols = [
                protocols
              ];
            }
          }
          options = initAsClient(this, address, protocols, options);
        } else {
          this._isServer = true;
        }
        if (options.autoPong) {
          this._autoPong = true;
          this._autoPongComplete = () => autoPongComplete(this);
          this._pendingAutoPongs = 0;
          this._maxPendingAutoPongs = options.maxPendingAutoPongs | 0;
        }
        this._closeTimeout = options.closeTimeout;
      }
      /**
       * For historical reasons, the custom "nodebuffer" type is used by the default
       * instead of "blob".
       *
       * @type {String}
       */
      get binaryType() {
        return this._binaryType;
      }
      set binaryType(type) {
        if (!BINARY_TYPES.includes(type)) return;
        this._binaryType = type;
        if (this._receiver) this._receiver._binaryType = type;
      }
      /**
       * @type {Number}
       */
      get bufferedAmount() {
        if (!this._socket) return this._bufferedAmount;
        return this._socket._writableState.length + this._sender._bufferedBytes;
      }
      /**
       * @type {String}
       */
      get extensions() {
        return Object.keys(this._extensions).join();
      }
      /**
       * @type {Boolean}
       */
      get isPaused() {
        return this._paused;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onclose() {
        return null;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onerror() {
        return null;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onopen() {
        return null;
      }
      /**
       * @type {Function}
       */
      /* istanbul ignore next */
      get onmessage() {
        return null;
      }
      /**
       * @type {String}
       */
      get protocol() {
        return this._protocol;
      }
      /**
       * @type {Number}
       */
      get readyState() {
        return this._readyState;
      }
      /**
       * @type {String}
       */
      get url() {
        return this._url;
      }
      /**
       * Set up the socket and the internal resources.
       *
       * @param {Duplex} socket The network socket between the server and client
       * @param {Buffer} head The first packet of the upgraded stream
       * @param {Object} options Options object
       * @param {Boolean} [options.allowSynchronousEvents=false] Specifies whether
       *     any of the `'message'`, `'ping'`, and `'pong'` events can be emitted
       *     multiple times in the same tick
       * @param {Function} [options.generateMask] The function used to generate the
       *     masking key
       * @param {Number} [options.maxBufferedChunks=0] The maximum number of
       *     buffered data chunks
       * @param {Number} [options.maxFragments=0] The maximum number of message
       *     fragments
       * @param {Number} [options.maxPayload=0] The maximum allowed message size
       * @param {Boolean} [options.skipUTF8Validation=false] Specifies whether or
       *     not to skip UTF-8 validation for text and close messages
       * @private
       */
      setSocket(socket, head, options) {
        const receiver = new Receiver2({
          allowSynchronousEvents: options.allowSynchronousEvents,
          binaryType: this.binaryType,
          extensions: this._extensions,
          isServer: this._isServer,
          maxBufferedChunks: options.maxBufferedChunks,
          maxFragments: options.maxFragments,
          maxPayload: options.maxPayload,
          skipUTF8Validation: options.skipUTF8Validation
        });
        const sender = new Sender2(socket, this._extensions, options.generateMask);
        this._receiver = receiver;
        this._sender = sender;
        this._socket = socket;
        receiver[kWebSocket] = this;
        sender[kWebSocket] = this;
        socket[kWebSocket] = this;
        receiver.on("conclude", receiverOnConclude);
        receiver.on("drain", receiverOnDrain);
        receiver.on("error", receiverOnError);
        receiver.on("message", receiverOnMessage);
        receiver.on("ping", receiverOnPing);
        receiver.on("pong", receiverOnPong);
        sender.onerror = senderOnError;
        if (socket.setTimeout) socket.setTimeout(0);
        if (socket.setNoDelay) socket.setNoDelay();
        if (head.length > 0) socket.unshift(head);
        socket.on("close", socketOnClose);
        socket.on("data", socketOnData);
        socket.on("end", socketOnEnd);
        socket.on("error", socketOnError);
        this._readyState = _WebSocket.OPEN;
        this.emit("open");
      }
      /**
       * Emit the `'close'` event.
       *
       * @private
       */
      emitClose() {
        if (!this._socket) {
          this._readyState = _WebSocket.CLOSED;
          this.emit("close", this._closeCode, this._closeMessage);
          return;
        }
        if (this._extensions[PerMessageDeflate2.extensionName]) {
          this._extensions[PerMessageDeflate2.extensionName].cleanup();
        }
        this._receiver.removeAllListeners();
        this._readyState = _WebSocket.CLOSED;
        this.emit("close", this._closeCode, this._closeMessage);
      }
      /**
       * Start a closing handshake.
       *
       *          +----------+   +-----------+   +----------+
       *     - - -|ws.close()|-->|close frame|-->|ws.close()|- - -
       *    |     +----------+   +-----------+   +----------+     |
       *          +----------+   +-----------+         |
       * CLOSING  |ws.close()|<--|close frame|<--+-----+       CLOSING
       *          +----------+   +-----------+   |
       *    |           |                        |   +---+        |
       *                +------------------------+-->|fin| - - - -
       *    |         +---+                      |   +---+
       *     - - - - -|fin|<---------------------+
       *              +---+
       *
       * @param {Number} [code] Status code explaining why the connection is closing
       * @param {(String|Buffer)} [data] The reason why the connection is
       *     closing
       * @public
       */
      close(code, data) {
        if (this.readyState === _WebSocket.CLOSED) return;
        if (this.readyState === _WebSocket.CONNECTING) {
          const msg = "WebSocket was closed before the connection was established";
          abortHandshake(this, this._req, msg);
          return;
        }
        if (this.readyState === _WebSocket.CLOSING) {
          if (this._closeFrameSent && (this._closeFrameReceived || this._receiver._writableState.errorEmitted)) {
            this._socket.end();
          }
          return;
        }
        this._sender.close(code, data, !this._isServer, (err) => {
          if (err) return;
          this._closeFrameSent = true;
          if (this._closeFrameReceived || this._receiver._writableState.errorEmitted) {
            this._socket.end();
          }
        });
        this._readyState = _WebSocket.CLOSING;
        setCloseTimer(this);
      }
      /**
       * Pause the socket.
       *
       * @public
       */
      pause() {
        if (this.readyState === _WebSocket.CONNECTING || this.readyState === _WebSocket.CLOSED) {
          return;
        }
        this._paused = true;
        this._socket.pause();
      }
      /**
       * Send a ping.
       *
       * @param {*} [data] The data to send
       * @param {Boolean} [mask] Indicates whether or not to mask `data`
       * @param {Function} [cb] Callback which is executed when the ping is sent
       * @public
       */
      ping(data, mask, cb) {
        if (this.readyState === _WebSocket.CONNECTING) {
          throw new Error("WebSocket is not open: readyState 0 (CONNECTING)");
        }
        if (typeof data === "function") {
          cb = data;
          data = mask = void 0;
        } else if (typeof mask === "function") {
          cb = mask;
          mask = void 0;
        }
        if (typeof data === "number") data = data.toString();
        if (this.readyState !== _WebSocket.OPEN) {
          sendAfterClose(this, data, cb);
          return;
        }
        if (mask === void 0) mask = !this._isServer;
        this._sender.ping(data || EMPTY_BUFFER, mask, cb);
      }
      /**
       * Send a pong.
       *
       * @param {*} [data] The data to send
       * @param {Boolean} [mask] Indicates whether or not to mask `data`
       * @param {Function} [cb] Callback which is executed when the pong is sent
       * @public
       */
      pong(data, mask, cb) {
        if (this.readyState === _WebSocket.CONNECTING) {
          throw new Error("WebSocket is not open: readyState 0 (CONNECTING)");
        }
        if (typeof data === "function") {
          cb = data;
          data = mask = void 0;
        } else if (typeof mask === "function") {
          cb = mask;
          mask = void 0;
        }
        if (typeof data === "number") data = data.toString();
        if (this.readyState !== _WebSocket.OPEN) {
          sendAfterClose(this, data, cb);
          return;
        }
        if (mask === void 0) mask = !this._isServer;
        this._sender.pong(data || EMPTY_BUFFER, mask, cb);
      }
      /**
       * Resume the socket.
       *
       * @public
       */
      resume() {
        if (this.readyState === _WebSocket.CONNECTING || this.readyState === _WebSocket.CLOSED) {
          return;
        }
        this._paused = false;
        if (!this._receiver._writableState.needDrain) this._socket.resume();
      }
      /**
       * Send a data message.
       *
       * @param {*} data The message to send
       * @param {Object} [options] Options object
       * @param {Boolean} [options.binary] Specifies whether `data` is binary or
       *     text
       * @param {Boolean} [options.compress] Specifies whether or not to compress
       *     `data`
       * @param {Boolean} [options.fin=true] Specifies whether the fragment is the
       *     last one
       * @param {Boolean} [options.mask] Specifies whether or not to mask `data`
       * @param {Function} [cb] Callback which is executed when data is written out
       * @public
       */
      send(data, options, cb) {
        if (this.readyState === _WebSocket.CONNECTING) {
          throw new Error("WebSocket is not open: readyState 0 (CONNECTING)");
        }
        if (typeof options === "function") {
          cb = options;
          options = {};
        }
        if (typeof data === "number") data = data.toString();
        if (this.readyState !== _WebSocket.OPEN) {
          sendAfterClose(this, data, cb);
          return;
        }
        const opts = {
          binary: typeof data !== "string",
          mask: !this._isServer,
          compress: true,
          fin: true,
          ...options
        };
        if (!this._extensions[PerMessageDeflate2.extensionName]) {
          opts.compress = false;
        }
        this._sender.send(data || EMPTY_BUFFER, opts, cb);
      }
      /**
       * Forcibly close the connection.
       *
       * @public
       */
      terminate() {
        if (this.readyState === _WebSocket.CLOSED) return;
        if (this.readyState === _WebSocket.CONNECTING) {
          const msg = "WebSocket was closed before the connection was established";
          abortHandshake(this, this._req, msg);
          return;
        }
        if (this._socket) {
          this._readyState = _WebSocket.CLOSING;
          this._socket.destroy();
        }
      }
    };
    Object.defineProperty(WebSocket3, "CONNECTING", {
      enumerable: true,
      value: readyStates.indexOf("CONNECTING")
    });
    Object.defineProperty(WebSocket3.prototype, "CONNECTING", {
      enumerable: true,
      value: readyStates.indexOf("CONNECTING")
    });
    Object.defineProperty(WebSocket3, "OPEN", {
      enumerable: true,
      value: readyStates.indexOf("OPEN")
    });
    Object.defineProperty(WebSocket3.prototype, "OPEN", {
      enumerable: true,
      value: readyStates.indexOf("OPEN")
    });
    Object.defineProperty(WebSocket3, "CLOSING", {
      enumerable: true,
      value: readyStates.indexOf("CLOSING")
    });
    Object.defineProperty(WebSocket3.prototype, "CLOSING", {
      enumerable: true,
      value: readyStates.indexOf("CLOSING")
    });
    Object.defineProperty(WebSocket3, "CLOSED", {
      enumerable: true,
      value: readyStates.indexOf("CLOSED")
    });
    Object.defineProperty(WebSocket3.prototype, "CLOSED", {
      enumerable: true,
      value: readyStates.indexOf("CLOSED")
    });
    [
      "binaryType",
      "bufferedAmount",
      "extensions",
      "isPaused",
      "protocol",
      "readyState",
      "url"
    ].forEach((property) => {
      Object.defineProperty(WebSocket3.prototype, property, {
        enumerable: true
      });
    });
    [
      "open",
      "error",
      "close",
      "message"
    ].forEach((method) => {
      Object.defineProperty(WebSocket3.prototype, `on${method}`, {
        enumerable: true,
        get() {
          for (const listener of this.listeners(method)) {
            if (listener[kForOnEventAttribute]) return listener[kListener];
          }
          return null;
        },
        set(handler) {
          for (const listener of this.listeners(method)) {
            if (listener[kForOnEventAttribute]) {
              this.removeListener(method, listener);
              break;
            }
          }
          if (typeof handler !== "function") return;
          this.addEventListener(method, handler, {
            [kForOnEventAttribute]: true
          });
        }
      });
    });
    WebSocket3.prototype.addEventListener = addEventListener;
    WebSocket3.prototype.removeEventListener = removeEventListener;
    module.exports = WebSocket3;
    function initAsClient(websocket, address, protocols, options) {
      const opts = {
        allowSynchronousEvents: true,
        autoPong: true,
        closeTimeout: CLOSE_TIMEOUT,
        protocolVersion: protocolVersions[1],
        maxBufferedChunks: 256 * 1024,
        maxFragments: 16 * 1024,
        maxPayload: 100 * 1024 * 1024,
        maxPendingAutoPongs: 60,
        skipUTF8Validation: false,
        perMessageDeflate: true,
        followRedirects: false,
        maxRedirects: 10,
        ...options,
        socketPath: void 0,
        hostname: void 0,
        protocol: void 0,
        protocols: void 0,
        timeout: void 0,
        method: "GET",
        host: void 0,
        path: void 0,
        port: void 0
      };
      if (!protocolVersions.includes(opts.protocolVersion)) {
        throw new RangeError(`Unsupported protocol version: ${opts.protocolVersion} (supported versions: ${protocolVersions.join(", ")})`);
      }
      let parsedUrl;
      if (address instanceof URL2) {
        parsedUrl = address;
      } else {
        try {
          parsedUrl = new URL2(address);
        } catch {
          throw new SyntaxError(`Invalid URL: ${address}`);
        }
      }
      if (parsedUrl.protocol === "http:" || parsedUrl.protocol === "https:") {
        parsedUrl = new URL2(parsedUrl);
        parsedUrl.protocol = parsedUrl.protocol === "http:" ? "ws:" : "wss:";
      }
      websocket._url = parsedUrl.href;
      const isSecure = parsedUrl.protocol === "wss:";
      const isIpcUrl = parsedUrl.protocol === "ws+unix:";
      let invalidUrlMessage;
      if (parsedUrl.protocol !== "ws:" && !isSecure && !isIpcUrl) {
        invalidUrlMessage = `The URL's protocol must be one of "ws:", "wss:", "http:", "https:", or "ws+unix:"`;
      } else if (isIpcUrl && !parsedUrl.pathname) {
        invalidUrlMessage = "The URL's pathname is empty";
      } else if (parsedUrl.hash) {
        invalidUrlMessage = "The URL contains a fragment identifier";
      }
      if (invalidUrlMessage) {
        const err = new SyntaxError(invalidUrlMessage);
        if (websocket._redirects === 0) {
          throw err;
        } else {
          emitErrorAndClose(websocket, err);
          return;
        }
      }
      const defaultPort = isSecure ? 443 : 80;
      const key = randomBytes(16).toString("base64");
      const request = isSecure ? https.request : http.request;
      const protocolSet = /* @__PURE__ */ new Set();
      let perMessageDeflate;
      opts.createConnection = opts.createConnection || (isSecure ? tlsConnect : netConnect);
      opts.defaultPort = opts.defaultPort || defaultPort;
      opts.port = parsedUrl.port || defaultPort;
      opts.host = parsedUrl.hostname.startsWith("[") ? parsedUrl.hostname.slice(1, -1) : parsedUrl.hostname;
      opts.headers = {
        ...opts.headers,
        "Sec-WebSocket-Version": opts.protocolVersion,
        "Sec-WebSocket-Key": key,
        Connection: "Upgrade",
        Upgrade: "websocket"
      };
      opts.path = parsedUrl.pathname + parsedUrl.search;
      opts.timeout = opts.handshakeTimeout;
      if (opts.perMessageDeflate) {
        perMessageDeflate = new PerMessageDeflate2({
          ...opts.perMessageDeflate,
          isServer: false,
          maxPayload: opts.maxPayload
        });
        opts.headers["Sec-WebSocket-Extensions"] = format({
          [PerMessageDeflate2.extensionName]: perMessageDeflate.offer()
        });
      }
      if (protocols.length) {
        for (const protocol of protocols) {
          if (typeof protocol !== "string" || !subprotocolRegex.test(protocol) || protocolSet.has(protocol)) {
            throw new SyntaxError("An invalid or duplicated subprotocol was specified");
          }
          protocolSet.add(protocol);
        }
        opts.headers["Sec-WebSocket-Protocol"] = protocols.join(",");
      }
      if (opts.origin) {
        if (opts.protocolVersion < 13) {
          opts.headers["Sec-WebSocket-Origin"] = opts.origin;
        } else {
          opts.headers.Origin = opts.origin;
        }
      }
      if (parsedUrl.username || parsedUrl.password) {
        const username = querystring.unescape(parsedUrl.username);
        const password = querystring.unescape(parsedUrl.password);
        opts.auth = `${username}:${password}`;
      }
      if (isIpcUrl) {
        const i = opts.path.indexOf(":");
        if (i === -1) {
          opts.socketPath = opts.path;
          opts.path = "";
        } else {
          opts.socketPath = opts.path.slice(0, i);
          opts.path = opts.path.slice(i + 1);
        }
      }
      let req;
      if (opts.followRedirects) {
        if (websocket._redirects === 0) {
          websocket._originalIpc = isIpcUrl;
          websocket._originalSecure = isSecure;
          websocket._originalHostOrSocketPath = isIpcUrl ? opts.socketPath : parsedUrl.host;
          const headers = options && options.headers;
          options = {
            ...options,
            headers: {}
          };
          if (headers) {
            for (const [key2, value] of Object.entries(headers)) {
              options.headers[key2.toLowerCase()] = value;
            }
          }
        } else if (websocket.listenerCount("redirect") === 0) {
          const isSameHost = isIpcUrl ? websocket._originalIpc ? opts.socketPath === websocket._originalHostOrSocketPath : false : websocket._originalIpc ? false : parsedUrl.host === websocket._originalHostOrSocketPath;
          if (!isSameHost || websocket._originalSecure && !isSecure) {
            delete opts.headers.authorization;
            delete opts.headers.cookie;
            if (!isSameHost) delete opts.headers.host;
            opts.auth = void 0;
          }
        }
        if (opts.auth && !options.headers.authorization) {
          options.headers.authorization = "Basic " + Buffer.from(opts.auth).toString("base64");
        }
        req = websocket._req = request(opts);
        if (websocket._redirects) {
          websocket.emit("redirect", websocket.url, req);
        }
      } else {
        req = websocket._req = request(opts);
      }
      if (opts.timeout) {
        req.on("timeout", () => {
          abortHandshake(websocket, req, "Opening handshake has timed out");
        });
      }
      req.on("error", (err) => {
        if (req === null || req[kAborted]) return;
        req = websocket._req = null;
        emitErrorAndClose(websocket, err);
      });
      req.on("response", (res) => {
        const location = res.headers.location;
        const statusCode = res.statusCode;
        if (location && opts.followRedirects && statusCode >= 300 && statusCode < 400) {
          if (++websocket._redirects > opts.maxRedirects) {
            abortHandshake(websocket, req, "Maximum redirects exceeded");
            return;
          }
          req.abort();
          let addr;
          try {
            addr = new URL2(location, address);
          } catch (e) {
            const err = new SyntaxError(`Invalid URL: ${location}`);
            emitErrorAndClose(websocket, err);
            return;
          }
          initAsClient(websocket, addr, protocols, options);
        } else if (!websocket.emit("unexpected-response", req, res)) {
          abortHandshake(websocket, req, `Unexpected server response: ${res.statusCode}`);
        }
      });
      req.on("upgrade", (res, socket, head) => {
        websocket.emit("upgrade", res);
        if (websocket.readyState !== WebSocket3.CONNECTING) return;
        req = websocket._req = null;
        const upgrade = res.headers.upgrade;
        if (upgrade === void 0 || upgrade.toLowerCase() !== "websocket") {
          abortHandshake(websocket, socket, "Invalid Upgrade header");
          return;
        }
        const digest = createHash("sha1").update(key + GUID).digest("base64");
        if (res.headers["sec-websocket-accept"] !== digest) {
          abortHandshake(websocket, socket, "Invalid Sec-WebSocket-Accept header");
          return;
        }
        const serverProt = res.headers["sec-websocket-protocol"];
        let protError;
        if (serverProt !== void 0) {
          if (!protocolSet.size) {
            protError = "Server sent a subprotocol but none was requested";
          } else if (!protocolSet.has(serverProt)) {
            protError = "Server sent an invalid subprotocol";
          }
        } else if (protocolSet.size) {
          protError = "Server sent no subprotocol";
        }
        if (protError) {
          abortHandshake(websocket, socket, protError);
          return;
        }
        if (serverProt) websocket._protocol = serverProt;
        const secWebSocketExtensions = res.headers["sec-websocket-extensions"];
        if (secWebSocketExtensions !== void 0) {
          if (!perMessageDeflate) {
            const message = "Server sent a Sec-WebSocket-Extensions header but no extension was requested";
            abortHandshake(websocket, socket, message);
            return;
          }
          let extensions;
          try {
            extensions = parse(secWebSocketExtensions);
          } catch (err) {
            const message = "Invalid Sec-WebSocket-Extensions header";
            abortHandshake(websocket, socket, message);
            return;
          }
          const extensionNames = Object.keys(extensions);
          if (extensionNames.length !== 1 || extensionNames[0] !== PerMessageDeflate2.extensionName) {
            const message = "Server indicated an extension that was not requested";
            abortHandshake(websocket, socket, message);
            return;
          }
          try {
            perMessageDeflate.accept(extensions[PerMessageDeflate2.extensionName]);
          } catch (err) {
            const message = "Invalid Sec-WebSocket-Extensions header";
            abortHandshake(websocket, socket, message);
            return;
          }
          websocket._extensions[PerMessageDeflate2.extensionName] = perMessageDeflate;
        }
        websocket.setSocket(socket, head, {
          allowSynchronousEvents: opts.allowSynchronousEvents,
          generateMask: opts.generateMask,
          maxBufferedChunks: opts.maxBufferedChunks,
          maxFragments: opts.maxFragments,
          maxPayload: opts.maxPayload,
          skipUTF8Validation: opts.skipUTF8Validation
        });
      });
      if (opts.finishRequest) {
        opts.finishRequest(req, websocket);
      } else {
        req.end();
      }
      return opts;
    }
    function emitErrorAndClose(websocket, err) {
      websocket._readyState = WebSocket3.CLOSING;
      websocket._errorEmitted = true;
      websocket.emit("error", err);
      websocket.emitClose();
    }
    function netConnect(options) {
      options.path = options.socketPath;
      return net.connect(options);
    }
    function tlsConnect(options) {
      options.path = void 0;
      if (!options.servername && options.servername !== "") {
        options.servername = net.isIP(options.host) ? "" : options.host;
      }
      return tls.connect(options);
    }
    function abortHandshake(websocket, stream, message) {
      websocket._readyState = WebSocket3.CLOSING;
      const err = new Error(message);
      Error.captureStackTrace(err, abortHandshake);
      if (stream.setHeader) {
        stream[kAborted] = true;
        stream.abort();
        if (stream.socket && !stream.socket.destroyed) {
          stream.socket.destroy();
        }
        process.nextTick(emitErrorAndClose, websocket, err);
      } else {
        stream.destroy(err);
        stream.once("error", websocket.emit.bind(websocket, "error"));
        stream.once("close", websocket.emitClose.bind(websocket));
      }
    }
    function sendAfterClose(websocket, data, cb) {
      if (data) {
        const length = isBlob(data) ? data.size : toBuffer(data).length;
        if (websocket._socket) websocket._sender._bufferedBytes += length;
        else websocket._bufferedAmount += length;
      }
      if (cb) {
        const err = new Error(`WebSocket is not open: readyState ${websocket.readyState} (${readyStates[websocket.readyState]})`);
        process.nextTick(cb, err);
      }
    }
    function receiverOnConclude(code, reason) {
      const websocket = this[kWebSocket];
      websocket._closeFrameReceived = true;
      websocket._closeCode = code;
      if (reason.length === 0) {
        websocket._closeMessage = EMPTY_BUFFER;
      } else {
        websocket._closeMessage = Buffer.allocUnsafeSlow(reason.length);
        websocket._closeMessage.set(reason);
      }
      if (websocket._socket[kWebSocket] === void 0) return;
      websocket._socket.removeListener("data", socketOnData);
      process.nextTick(resume, websocket._socket);
      if (code === 1005) websocket.close();
      else websocket.close(code, reason);
    }
    function receiverOnDrain() {
      const websocket = this[kWebSocket];
      if (!websocket.isPaused) websocket._socket.resume();
    }
    function receiverOnError(err) {
      const websocket = this[kWebSocket];
      if (websocket._socket[kWebSocket] !== void 0) {
        websocket._socket.removeListener("data", socketOnData);
        process.nextTick(resume, websocket._socket);
        websocket.close(err[kStatusCode]);
      }
      if (!websocket._errorEmitted) {
        websocket._errorEmitted = true;
        websocket.emit("error", err);
      }
    }
    function receiverOnFinish() {
      this[kWebSocket].emitClose();
    }
    function receiverOnMessage(data, isBinary) {
      this[kWebSocket].emit("message", data, isBinary);
    }
    function receiverOnPing(data) {
      const websocket = this[kWebSocket];
      if (websocket._autoPong && websocket.readyState === WebSocket3.OPEN) {
        if (websocket._maxPendingAutoPongs > 0 && websocket._pendingAutoPongs >= websocket._maxPendingAutoPongs) {
          websocket.terminate();
        } else {
          websocket._pendingAutoPongs++;
          websocket.pong(data, !this._isServer, websocket._autoPongComplete);
        }
      }
      websocket.emit("ping", data);
    }
    function autoPongComplete(websocket) {
      websocket._pendingAutoPongs--;
    }
    function receiverOnPong(data) {
      this[kWebSocket].emit("pong", data);
    }
    function resume(stream) {
      stream.resume();
    }
    function senderOnError(err) {
      const websocket = this[kWebSocket];
      if (websocket.readyState === WebSocket3.CLOSED) return;
      if (websocket.readyState === WebSocket3.OPEN) {
        websocket._readyState = WebSocket3.CLOSING;
        setCloseTimer(websocket);
      }
      this._socket.end();
      if (!websocket._errorEmitted) {
        websocket._errorEmitted = true;
        websocket.emit("error", err);
      }
    }
    function setCloseTimer(websocket) {
      websocket._closeTimer = setTimeout(websocket._socket.destroy.bind(websocket._socket), websocket._closeTimeout);
    }
    function socketOnClose() {
      const websocket = this[kWebSocket];
      this.removeListener("close", socketOnClose);
      this.removeListener("data", socketOnData);
      this.removeListener("end", socketOnEnd);
      websocket._readyState = WebSocket3.CLOSING;
      if (!this._readableState.endEmitted && !websocket._closeFrameReceived && !websocket._receiver._writableState.errorEmitted && this._readableState.length !== 0) {
        const chunk = this.read(this._readableState.length);
        websocket._receiver.write(chunk);
      }
      websocket._receiver.end();
      this[kWebSocket] = void 0;
      clearTimeout(websocket._closeTimer);
      if (websocket._receiver._writableState.finished || websocket._receiver._writableState.errorEmitted) {
        websocket.emitClose();
      } else {
        websocket._receiver.on("error", receiverOnFinish);
        websocket._receiver.on("finish", receiverOnFinish);
      }
    }
    function socketOnData(chunk) {
      if (!this[kWebSocket]._receiver.write(chunk)) {
        this.pause();
      }
    }
    function socketOnEnd() {
      const websocket = this[kWebSocket];
      websocket._readyState = WebSocket3.CLOSING;
      websocket._receiver.end();
      this.end();
    }
    function socketOnError() {
      const websocket = this[kWebSocket];
      this.removeListener("error", socketOnError);
      this.on("error", NOOP);
      if (websocket) {
        websocket._readyState = WebSocket3.CLOSING;
        this.destroy();
      }
    }
  }
});

// npm/ws/8.23.0/lib/stream.js
var require_stream = __commonJS({
  "npm/ws/8.23.0/lib/stream.js"(exports, module) {
    "use strict";
    var WebSocket3 = require_websocket();
    var { Duplex } = __require("node:stream");
    function emitClose(stream) {
      stream.emit("close");
    }
    function duplexOnEnd() {
      if (!this.destroyed && this._writableState.finished) {
        this.destroy();
      }
    }
    function duplexOnError(err) {
      this.removeListener("error", duplexOnError);
      this.destroy();
      if (this.listenerCount("error") === 0) {
        this.emit("error", err);
      }
    }
    function createWebSocketStream2(ws, options) {
      let terminateOnDestroy = true;
      const duplex = new Duplex({
        ...options,
        autoDestroy: false,
        emitClose: false,
        objectMode: false,
        writableObjectMode: false
      });
      ws.on("message", function message(msg, isBinary) {
        const data = !isBinary && duplex._readableState.objectMode ? msg.toString() : msg;
        if (!duplex.push(data)) ws.pause();
      });
      ws.once("error", function error(err) {
        if (duplex.destroyed) return;
        terminateOnDestroy = false;
        duplex.destroy(err);
      });
      ws.once("close", function close() {
        if (duplex.destroyed) return;
        duplex.push(null);
      });
      duplex._destroy = function(err, callback) {
        if (ws.readyState === ws.CLOSED) {
          callback(err);
          process.nextTick(emitClose, duplex);
          return;
        }
        let called = false;
        ws.once("error", function error(err2) {
          called = true;
          callback(err2);
        });
        ws.once("close", function close() {
          if (!called) callback(err);
          process.nextTick(emitClose, duplex);
        });
        if (terminateOnDestroy) ws.terminate();
      };
      duplex._final = function(callback) {
        if (ws.readyState === ws.CONNECTING) {
          ws.once("open", function open() {
            duplex._final(callback);
          });
          return;
        }
        if (ws._socket === null) return;
        if (ws._socket._writableState.finished) {
          callback();
          if (duplex._readableState.endEmitted) duplex.destroy();
        } else {
          ws._socket.once("finish", function finish() {
            callback();
          });
          ws.close();
        }
      };
      duplex._read = function() {
        if (ws.isPaused) ws.resume();
      };
      duplex._write = function(chunk, encoding, callback) {
        if (ws.readyState === ws.CONNECTING) {
          ws.once("open", function open() {
            duplex._write(chunk, encoding, callback);
          });
          return;
        }
        ws.send(chunk, callback);
      };
      duplex.on("end", duplexOnEnd);
      duplex.on("error", duplexOnError);
      return duplex;
    }
    module.exports = createWebSocketStream2;
  }
});

// npm/ws/8.23.0/lib/subprotocol.js
var require_subprotocol = __commonJS({
  "npm/ws/8.23.0/lib/subprotocol.js"(exports, module) {
    "use strict";
    var { tokenChars } = require_validation();
    function parse(header) {
      const protocols = /* @__PURE__ */ new Set();
      let start = -1;
      let end3 = -1;
      let i = 0;
      for (i; i < header.length; i++) {
        const code = header.charCodeAt(i);
        if (end3 === -1 && tokenChars[code] === 1) {
          if (start === -1) start = i;
        } else if (i !== 0 && (code === 32 || code === 9)) {
          if (end3 === -1 && start !== -1) end3 = i;
        } else if (code === 44) {
          if (start === -1) {
            throw new SyntaxError(`Unexpected character at index ${i}`);
          }
          if (end3 === -1) end3 = i;
          const protocol2 = header.slice(start, end3);
          if (protocols.has(protocol2)) {
            throw new SyntaxError(`The "${protocol2}" subprotocol is duplicated`);
          }
          protocols.add(protocol2);
          start = end3 = -1;
        } else {
          throw new SyntaxError(`Unexpected character at index ${i}`);
        }
      }
      if (start === -1 || end3 !== -1) {
        throw new SyntaxError("Unexpected end of input");
      }
      const protocol = header.slice(start, i);
      if (protocols.has(protocol)) {
        throw new SyntaxError(`The "${protocol}" subprotocol is duplicated`);
      }
      protocols.add(protocol);
      return protocols;
    }
    module.exports = {
      parse
    };
  }
});

// npm/ws/8.23.0/lib/websocket-server.js
var require_websocket_server = __commonJS({
  "npm/ws/8.23.0/lib/websocket-server.js"(exports, module) {
    "use strict";
    var EventEmitter = __require("node:events");
    var http = __require("node:http");
    var { Duplex } = __require("node:stream");
    var { createHash } = __require("node:crypto");
    var extension2 = require_extension();
    var PerMessageDeflate2 = require_permessage_deflate();
    var subprotocol2 = require_subprotocol();
    var WebSocket3 = require_websocket();
    var { CLOSE_TIMEOUT, GUID, kWebSocket } = require_constants();
    var keyRegex = /^[+/0-9A-Za-z]{22}==$/;
    var RUNNING = 0;
    var CLOSING = 1;
    var CLOSED = 2;
    var WebSocketServer2 = class extends EventEmitter {
      /**
       * Create a `WebSocketServer` instance.
       *
       * @param {Object} options Configuration options
       * @param {Boolean} [options.allowSynchronousEvents=true] Specifies whether
       *     any of the `'message'`, `'ping'`, and `'pong'` events can be emitted
       *     multiple times in the same tick
       * @param {Boolean} [options.autoPong=true] Specifies whether or not to
       *     automatically send a pong in response to a ping
       * @param {Number} [options.backlog=511] The maximum length of the queue of
       *     pending connections
       * @param {Boolean} [options.clientTracking=true] Specifies whether or not to
       *     track clients
       * @param {Number} [options.closeTimeout=30000] Duration in milliseconds to
       *     wait for the closing handshake to finish after `websocket.close()` is
       *     called
       * @param {Function} [options.handleProtocols] A hook to handle protocols
       * @param {String} [options.host] The hostname where to bind the server
       * @param {Number} [options.maxBufferedChunks=262144] The maximum number of
       *     buffered data chunks
       * @param {Number} [options.maxFragments=16384] The maximum number of message
       *     fragments
       * @param {Number} [options.maxPayload=104857600] The maximum allowed message
       *     size
       * @param {Number} [options.maxPendingAutoPongs=60] The maximum number of
       *     pending automatic pongs
       * @param {Boolean} [options.noServer=false] Enable no server mode
       * @param {String} [options.path] Accept only connections matching this path
       * @param {(Boolean|Object)} [options.perMessageDeflate=false] Enable/disable
       *     permessage-deflate
       * @param {Number} [options.port] The port where to bind the server
       * @param {(http.Server|https.Server)} [options.server] A pre-created HTTP/S
       *     server to use
       * @param {Boolean} [options.skipUTF8Validation=false] Specifies whether or
       *     not to skip UTF-8 validation for text and close messages
       * @param {Function} [options.verifyClient] A hook to reject connections
       * @param {Function} [options.WebSocket=WebSocket] Specifies the `WebSocket`
       *     class to use. It must be the `WebSocket` class or class that extends it
       * @param {Function} [callback] A listener for the `listening` event
       */
      constructor(options, callback) {
        super();
        options = {
          allowSynchronousEvents: true,
          autoPong: true,
          maxBufferedChunks: 256 * 1024,
          maxFragments: 16 * 1024,
          maxPayload: 100 * 1024 * 1024,
          maxPendingAutoPongs: 60,
          skipUTF8Validation: false,
          perMessageDeflate: false,
          handleProtocols: null,
          clientTracking: true,
          closeTimeout: CLOSE_TIMEOUT,
          verifyClient: null,
          noServer: false,
          backlog: null,
          server: null,
          host: null,
          path: null,
          port: null,
          WebSocket: WebSocket3,
          ...options
        };
        if (options.port == null && !options.server && !options.noServer || options.port != null && (options.server || options.noServer) || options.server && options.noServer) {
          throw new TypeError('One and only one of the "port", "server", or "noServer" options must be specified');
        }
        if (options.port != null) {
          this._server = http.createServer((req, res) => {
            const body = http.STATUS_CODES[426];
            res.writeHead(426, {
              "Content-Length": body.length,
              "Content-Type": "text/plain"
            });
            res.end(body);
          });
          this._server.listen(options.port, options.host, options.backlog, callback);
        } else if (options.server) {
          this._server = options.server;
        }
        if (this._server) {
          const emitConnection = this.emit.bind(this, "connection");
          this._removeListeners = addListeners(this._server, {
            listening: this.emit.bind(this, "listening"),
            error: this.emit.bind(this, "error"),
            upgrade: (req, socket, head) => {
              this.handleUpgrade(req, socket, head, emitConnection);
            }
          });
        }
        if (options.perMessageDeflate === true) options.perMessageDeflate = {};
        if (options.clientTracking) {
          this.clients = /* @__PURE__ */ new Set();
          this._shouldEmitClose = false;
        }
        this.options = options;
        this._state = RUNNING;
      }
      /**
       * Returns the bound address, the address family name, and port of the server
       * as reported by the operating system if listening on an IP socket.
       * If the server is listening on a pipe or UNIX domain socket, the name is
       * returned as a string.
       *
       * @return {(Object|String|null)} The address of the server
       * @public
       */
      address() {
        if (this.options.noServer) {
          throw new Error('The server is operating in "noServer" mode');
        }
        if (!this._server) return null;
        return this._server.address();
      }
      /**
       * Stop the server from accepting new connections and emit the `'close'` event
       * when all existing connections are closed.
       *
       * @param {Function} [cb] A one-time listener for the `'close'` event
       * @public
       */
      close(cb) {
        if (this._state === CLOSED) {
          if (cb) {
            this.once("close", () => {
              cb(new Error("The server is not running"));
            });
          }
          process.nextTick(emitClose, this);
          return;
        }
        if (cb) this.once("close", cb);
        if (this._state === CLOSING) return;
        this._state = CLOSING;
        if (this.options.noServer || this.options.server) {
          if (this._server) {
            this._removeListeners();
            this._removeListeners = this._server = null;
          }
          if (this.clients) {
            if (!this.clients.size) {
              process.nextTick(emitClose, this);
            } else {
              this._shouldEmitClose = true;
            }
          } else {
            process.nextTick(emitClose, this);
          }
        } else {
          const server = this._server;
          this._removeListeners();
          this._removeListeners = this._server = null;
          server.close(() => {
            emitClose(this);
          });
        }
      }
      /**
       * See if a given request should be handled by this server instance.
       *
       * @param {http.IncomingMessage} req Request object to inspect
       * @return {Boolean} `true` if the request is valid, else `false`
       * @public
       */
      shouldHandle(req) {
        if (this.options.path) {
          const index = req.url.indexOf("?");
          const pathname = index !== -1 ? req.url.slice(0, index) : req.url;
          if (pathname !== this.options.path) return false;
        }
        return true;
      }
      /**
       * Handle a HTTP Upgrade request.
       *
       * @param {http.IncomingMessage} req The request object
       * @param {Duplex} socket The network socket between the server and client
       * @param {Buffer} head The first packet of the upgraded stream
       * @param {Function} cb Callback
       * @public
       */
      handleUpgrade(req, socket, head, cb) {
        socket.on("error", socketOnError);
        const key = req.headers["sec-websocket-key"];
        const upgrade = req.headers.upgrade;
        const version = +req.headers["sec-websocket-version"];
        if (req.method !== "GET") {
          const message = "Invalid HTTP method";
          abortHandshakeOrEmitwsClientError(this, req, socket, 405, message);
          return;
        }
        if (upgrade === void 0 || upgrade.toLowerCase() !== "websocket") {
          const message = "Invalid Upgrade header";
          abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
          return;
        }
        if (key === void 0 || !keyRegex.test(key)) {
          const message = "Missing or invalid Sec-WebSocket-Key header";
          abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
          return;
        }
        if (version !== 13 && version !== 8) {
          const message = "Missing or invalid Sec-WebSocket-Version header";
          abortHandshakeOrEmitwsClientError(this, req, socket, 400, message, {
            "Sec-WebSocket-Version": "13, 8"
          });
          return;
        }
        if (!this.shouldHandle(req)) {
          abortHandshake(socket, 400);
          return;
        }
        const secWebSocketProtocol = req.headers["sec-websocket-protocol"];
        let protocols = /* @__PURE__ */ new Set();
        if (secWebSocketProtocol !== void 0) {
          try {
            protocols = subprotocol2.parse(secWebSocketProtocol);
          } catch (err) {
            const message = "Invalid Sec-WebSocket-Protocol header";
            abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
            return;
          }
        }
        const secWebSocketExtensions = req.headers["sec-websocket-extensions"];
        const extensions = {};
        if (this.options.perMessageDeflate && secWebSocketExtensions !== void 0) {
          const perMessageDeflate = new PerMessageDeflate2({
            ...this.options.perMessageDeflate,
            isServer: true,
            maxPayload: this.options.maxPayload
          });
          try {
            const offers = extension2.parse(secWebSocketExtensions);
            if (offers[PerMessageDeflate2.extensionName]) {
              perMessageDeflate.accept(offers[PerMessageDeflate2.extensionName]);
              extensions[PerMessageDeflate2.extensionName] = perMessageDeflate;
            }
          } catch (err) {
            const message = "Invalid or unacceptable Sec-WebSocket-Extensions header";
            abortHandshakeOrEmitwsClientError(this, req, socket, 400, message);
            return;
          }
        }
        if (this.options.verifyClient) {
          const info = {
            origin: req.headers[`${version === 8 ? "sec-websocket-origin" : "origin"}`],
            secure: !!(req.socket.authorized || req.socket.encrypted),
            req
          };
          if (this.options.verifyClient.length === 2) {
            this.options.verifyClient(info, (verified, code, message, headers) => {
              if (!verified) {
                return abortHandshake(socket, code || 401, message, headers);
              }
              this.completeUpgrade(extensions, key, protocols, req, socket, head, cb);
            });
            return;
          }
          if (!this.options.verifyClient(info)) return abortHandshake(socket, 401);
        }
        this.completeUpgrade(extensions, key, protocols, req, socket, head, cb);
      }
      /**
       * Upgrade the connection to WebSocket.
       *
       * @param {Object} extensions The accepted extensions
       * @param {String} key The value of the `Sec-WebSocket-Key` header
       * @param {Set} protocols The subprotocols
       * @param {http.IncomingMessage} req The request object
       * @param {Duplex} socket The network socket between the server and client
       * @param {Buffer} head The first packet of the upgraded stream
       * @param {Function} cb Callback
       * @throws {Error} If called more than once with the same socket
       * @private
       */
      completeUpgrade(extensions, key, protocols, req, socket, head, cb) {
        if (!socket.readable || !socket.writable) return socket.destroy();
        if (socket[kWebSocket]) {
          throw new Error("server.handleUpgrade() was called more than once with the same socket, possibly due to a misconfiguration");
        }
        if (this._state > RUNNING) return abortHandshake(socket, 503);
        const digest = createHash("sha1").update(key + GUID).digest("base64");
        const headers = [
          "HTTP/1.1 101 Switching Protocols",
          "Upgrade: websocket",
          "Connection: Upgrade",
          `Sec-WebSocket-Accept: ${digest}`
        ];
        const ws = new this.options.WebSocket(null, void 0, this.options);
        if (protocols.size) {
          const protocol = this.options.handleProtocols ? this.options.handleProtocols(protocols, req) : protocols.values().next().value;
          if (protocol) {
            headers.push(`Sec-WebSocket-Protocol: ${protocol}`);
            ws._protocol = protocol;
          }
        }
        if (extensions[PerMessageDeflate2.extensionName]) {
          const params = extensions[PerMessageDeflate2.extensionName].params;
          const value = extension2.format({
            [PerMessageDeflate2.extensionName]: [
              params
            ]
          });
          headers.push(`Sec-WebSocket-Extensions: ${value}`);
          ws._extensions = extensions;
        }
        this.emit("headers", headers, req);
        socket.write(headers.concat("\r\n").join("\r\n"));
        socket.removeListener("error", socketOnError);
        ws.setSocket(socket, head, {
          allowSynchronousEvents: this.options.allowSynchronousEvents,
          maxBufferedChunks: this.options.maxBufferedChunks,
          maxFragments: this.options.maxFragments,
          maxPayload: this.options.maxPayload,
          skipUTF8Validation: this.options.skipUTF8Validation
        });
        if (this.clients) {
          this.clients.add(ws);
          ws.on("close", () => {
            this.clients.delete(ws);
            if (this._shouldEmitClose && !this.clients.size) {
              process.nextTick(emitClose, this);
            }
          });
        }
        cb(ws, req);
      }
    };
    module.exports = WebSocketServer2;
    function addListeners(server, map) {
      for (const event of Object.keys(map)) server.on(event, map[event]);
      return function removeListeners() {
        for (const event of Object.keys(map)) {
          server.removeListener(event, map[event]);
        }
      };
    }
    function emitClose(server) {
      server._state = CLOSED;
      server.emit("close");
    }
    function socketOnError() {
      this.destroy();
    }
    function abortHandshake(socket, code, message, headers) {
      message = message || http.STATUS_CODES[code];
      headers = {
        Connection: "close",
        "Content-Type": "text/html",
        "Content-Length": Buffer.byteLength(message),
        ...headers
      };
      socket.once("finish", socket.destroy);
      socket.end(`HTTP/1.1 ${code} ${http.STATUS_CODES[code]}\r
` + Object.keys(headers).map((h) => `${h}: ${headers[h]}`).join("\r\n") + "\r\n\r\n" + message);
    }
    function abortHandshakeOrEmitwsClientError(server, req, socket, code, message, headers) {
      if (server.listenerCount("wsClientError")) {
        const err = new Error(message);
        Error.captureStackTrace(err, abortHandshakeOrEmitwsClientError);
        server.emit("wsClientError", err, socket, req);
      } else {
        abortHandshake(socket, code, message, headers);
      }
    }
  }
});

// npm/ws/8.23.0/wrapper.mjs
var wrapper_exports = {};
__export(wrapper_exports, {
  PerMessageDeflate: () => import_permessage_deflate.default,
  Receiver: () => import_receiver.default,
  Sender: () => import_sender.default,
  WebSocket: () => import_websocket.default,
  WebSocketServer: () => import_websocket_server.default,
  createWebSocketStream: () => import_stream.default,
  default: () => wrapper_default,
  extension: () => import_extension.default,
  subprotocol: () => import_subprotocol.default
});
var import_stream, import_extension, import_permessage_deflate, import_receiver, import_sender, import_subprotocol, import_websocket, import_websocket_server, wrapper_default;
var init_wrapper = __esm({
  "npm/ws/8.23.0/wrapper.mjs"() {
    import_stream = __toESM(require_stream(), 1);
    import_extension = __toESM(require_extension(), 1);
    import_permessage_deflate = __toESM(require_permessage_deflate(), 1);
    import_receiver = __toESM(require_receiver(), 1);
    import_sender = __toESM(require_sender(), 1);
    import_subprotocol = __toESM(require_subprotocol(), 1);
    import_websocket = __toESM(require_websocket(), 1);
    import_websocket_server = __toESM(require_websocket_server(), 1);
    wrapper_default = import_websocket.default;
  }
});

// sdk/typescript/options.ts
var TriggerAction = {
  /** Fire and forget: the call resolves with `undefined` at once; its outcome is not reported. */
  Void: () => ({
    type: "void"
  }),
  /**
   * Puts the call into a queue: it resolves with `{ messageReceiptId }` when the queue has accepted
   * it, and fails with `enqueue_error` if there is no such queue. See {@linkcode EnqueueOptions}
   * for delays, priority and more.
   */
  Enqueue: ({ queue, ...options }) => {
    return {
      type: "enqueue",
      queue,
      ...options
    };
  }
};

// sdk/typescript/platform.ts
function attempt(read2) {
  try {
    return read2();
  } catch {
    return void 0;
  }
}
function processGlobal() {
  const found = globalThis.process;
  return typeof found?.versions?.node === "string" ? found : void 0;
}
function denoGlobal() {
  return globalThis.Deno;
}
function environment(name) {
  const deno = denoGlobal();
  return attempt(() => deno ? deno.env.get(name) : processGlobal()?.env?.[name]) || void 0;
}
function builtinModule(name) {
  return attempt(() => processGlobal()?.getBuiltinModule?.(name));
}
function atEndOfTick(task) {
  const process2 = processGlobal();
  queueMicrotask(process2?.nextTick ? () => process2.nextTick(task) : task);
}
function newId() {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = bytes[6] & 15 | 64;
  bytes[8] = bytes[8] & 63 | 128;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [
    [
      0,
      8
    ],
    [
      8,
      12
    ],
    [
      12,
      16
    ],
    [
      16,
      20
    ],
    [
      20,
      32
    ]
  ].map(([from, to]) => hex.slice(from, to)).join("-");
}
var platformClock = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
  wall: wallTime
};
var WALL_SLACK_MS = 5;
var originMs = performance.timeOrigin;
function wallTime() {
  const [now, date] = [
    performance.now(),
    Date.now()
  ];
  if (Math.abs(date - originMs - now) > WALL_SLACK_MS) originMs = date - now;
  return originMs + now;
}

// sdk/typescript/trace_context.ts
var attached = /* @__PURE__ */ new Set();
function runningTraceparent() {
  for (const scopes of attached) {
    const traceparent = scopes.current()?.traceparent;
    if (traceparent !== void 0) return traceparent;
  }
  return void 0;
}
var CallScopes = class {
  #find;
  #storage;
  #isFound = false;
  /** `find` loads `node:async_hooks`; it is called when the first handler runs. */
  constructor(find = () => builtinModule("node:async_hooks")) {
    this.#find = find;
  }
  /** Runs `task`, in whose asynchronous flow {@linkcode CallScopes.current} returns `scope`. */
  run(scope, task) {
    if (!this.#isFound) {
      this.#isFound = true;
      const hooks = this.#find();
      this.#storage = hooks && new hooks.AsyncLocalStorage();
    }
    return this.#storage ? this.#storage.run(scope, task) : task();
  }
  /** The scope of the handler that is running, if any. */
  current() {
    return this.#storage?.getStore();
  }
  /** Makes the scopes visible to {@linkcode runningTraceparent}. */
  attach() {
    attached.add(this);
  }
  /** Undoes {@linkcode CallScopes.attach}. */
  detach() {
    attached.delete(this);
  }
};
var TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})/;
var SAMPLED_FLAGS = "13579bdf";
function readTraceparent(text) {
  const found = text === void 0 ? null : TRACEPARENT.exec(text);
  if (!found) return void 0;
  const rest = text.slice(found[0].length);
  if (rest !== "" && (text.startsWith("00-") || !rest.startsWith("-"))) return void 0;
  const [, trace_id, span_id, flags] = found;
  return {
    trace_id,
    span_id,
    isSampled: (parseInt(flags, 16) & 1) === 1
  };
}
function looksSampled(text) {
  return SAMPLED_FLAGS.includes(text[54] ?? "?");
}

// sdk/typescript/logger.ts
var OFFLINE_LINES_MAX = 1e3;
var defaultWorker;
var sinks = /* @__PURE__ */ new WeakMap();
function setLogSink(worker, sink) {
  sinks.set(worker, sink);
}
function setDefaultWorker(worker) {
  defaultWorker = worker;
}
var CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
function printError({ message }) {
  const text = message.replace(CONTROLS, (c) => c === "\n" || c === "	" ? " " : "");
  console.error(`[engine] ${text}`);
}
var FAILURES_PRINTED_MAX = 10;
var FAILURES_WINDOW_MS = 1e4;
var STACK_CHARS_MAX = 32 * 1024;
var FailurePrinter = class {
  #now;
  #windowStart = -Infinity;
  #printed = 0;
  #left = 0;
  /** `now`: milliseconds of a monotonic clock. */
  constructor(now) {
    this.#now = now;
  }
  /** Prints the stack trace of a handler's error. */
  print(function_id, stacktrace) {
    const now = this.#now();
    if (now - this.#windowStart >= FAILURES_WINDOW_MS) {
      if (this.#left > 0) {
        console.error(`[engine] ${this.#left} more failed calls were not printed`);
      }
      this.#windowStart = now;
      this.#printed = this.#left = 0;
    }
    if (this.#printed >= FAILURES_PRINTED_MAX) {
      this.#left++;
      return;
    }
    this.#printed++;
    const lines = stacktrace.slice(0, STACK_CHARS_MAX).split("\n").map((line) => `  ${line.replace(CONTROLS, "")}`);
    console.error([
      `[engine] ${function_id.replace(CONTROLS, "")} failed:`,
      ...lines
    ].join("\n"));
  }
};
function failurePrinter({ dial, clock = platformClock }) {
  if (dial) return void 0;
  const printer2 = new FailurePrinter(() => clock.now());
  return (function_id, stacktrace) => printer2.print(function_id, stacktrace);
}
var Logger = class {
  #worker;
  #service;
  #offlineLines = 0;
  /**
   * Needs no arguments in a program with one worker.
   *
   * @param worker Sends the lines. Default: the worker that was registered last before a line is
   * written; without one, lines only appear on the console.
   * @param service Name in the logs. Default: that of the worker.
   */
  constructor(worker, service) {
    this.#worker = worker;
    this.#service = service;
  }
  /** Logs details that are useful only to find a bug. */
  trace(message, data) {
    this.#write("trace", message, data);
  }
  /** Logs information for debugging. */
  debug(message, data) {
    this.#write("debug", message, data);
  }
  /** Logs a normal event. */
  info(message, data) {
    this.#write("info", message, data);
  }
  /** Logs an event that needs attention. */
  warn(message, data) {
    this.#write("warn", message, data);
  }
  /** Logs a failure. */
  error(message, data) {
    this.#write("error", message, data);
  }
  #write(level, message, given) {
    const data = given;
    const worker = this.#worker ?? defaultWorker;
    const service = this.#service ?? worker?.name;
    const shown = data === void 0 ? void 0 : showData(data);
    const text = attempt(() => String(message)) ?? "";
    const isSent2 = worker !== void 0 && this.#send(worker, {
      level,
      message: text,
      data,
      shown,
      service
    });
    const name = service === void 0 ? "" : ` [${service}]`;
    const line = `${level.toUpperCase().padEnd(5)}${name} ${text}`;
    const print = () => printer(level)(shown === void 0 ? line : `${line} ${shown}`);
    attempt(() => isSent2 ? printAsLogger(print) : print());
  }
  /** Without a connection only the first lines are queued: calls share the queue. */
  #maySend(worker) {
    const state = worker.connectionState;
    if (state === "failed" || state === "disconnected") return false;
    if (state === "connected") this.#offlineLines = 0;
    else if (this.#offlineLines++ >= OFFLINE_LINES_MAX) return false;
    return true;
  }
  /** Sends a line; `false` if it is dropped. */
  #send(worker, entry) {
    const sink = sinks.get(worker);
    if (sink) return sink.takeLog(entry);
    if (!this.#maySend(worker)) return false;
    const { level, message, data, shown, service } = entry;
    const payload = {
      message
    };
    if (data !== void 0) payload.data = isJson(data) ? data : shown ?? null;
    if (service !== void 0) payload.service_name = service;
    const ids = readTraceparent(runningTraceparent());
    if (ids) {
      payload.trace_id = ids.trace_id;
      payload.span_id = ids.span_id;
    }
    const request = {
      function_id: `engine::log::${level}`,
      payload,
      action: TriggerAction.Void()
    };
    worker.trigger(request).catch(() => {
    });
    return true;
  }
};
function printer(level) {
  switch (level) {
    case "error":
      return (line) => console.error(line);
    case "warn":
      return (line) => console.warn(line);
    case "info":
      return (line) => console.info(line);
    default:
      return (line) => console.debug(line);
  }
}
function isJson(data) {
  return attempt(() => JSON.stringify(data)) !== void 0;
}
function showData(data) {
  return attempt(() => JSON.stringify(data)) ?? attempt(() => String(data)) ?? "?";
}
var METHODS = [
  "log",
  "info",
  "warn",
  "error",
  "debug"
];
var MARKED = Symbol.for("engine-sdk.output-marks");
var isLoggerPrinting = false;
function printAsLogger(print) {
  isLoggerPrinting = true;
  try {
    print();
  } finally {
    isLoggerPrinting = false;
  }
}
function markOutput(target = console) {
  if (environment("ENGINE_OUTPUT_MARKS") !== "1" || MARKED in target) return;
  Object.defineProperty(target, MARKED, {
    value: true
  });
  for (const method of METHODS) {
    const original = target[method].bind(target);
    target[method] = (...values) => original(...attempt(() => marked(values)) ?? values);
  }
}
function currentMark() {
  const ids = readTraceparent(runningTraceparent());
  if (!ids && !isLoggerPrinting) return void 0;
  const trace = ids ? `${ids.trace_id}-${ids.span_id}` : "";
  return `\x1B]engine;${trace}${isLoggerPrinting ? ";logger" : ""}\x07`;
}
function marked(values) {
  const mark = currentMark();
  if (mark === void 0) return values;
  const lines = (text) => text.replaceAll("\n", `
${mark}`);
  const [first, ...rest] = values;
  if (typeof first === "string" && first.includes("%") && rest.length > 0) {
    const others = rest.map((value) => typeof value === "string" ? lines(value) : value);
    return [
      mark + lines(first),
      ...others
    ];
  }
  const texts = values.map((value) => typeof value === "string" ? value : inspect(value));
  return [
    mark + lines(texts.join(" "))
  ];
}
function inspect(value) {
  const deno = globalThis.Deno;
  if (deno?.inspect) return deno.inspect(value);
  const util = builtinModule("node:util");
  return util ? util.inspect(value) : String(value);
}

// sdk/testing/hook.ts
var KEY = Symbol.for("engine-sdk.testing");
function testConnection() {
  return globalThis[KEY]?.at(-1);
}

// sdk/typescript/wire/errors.ts
var ERRORS = {
  function_not_found: {
    status: 503,
    retryable: false
  },
  invocation_stopped: {
    status: 503,
    retryable: false
  },
  timeout: {
    status: 504,
    retryable: false
  },
  cancelled: {
    status: 500,
    retryable: false
  },
  overloaded: {
    status: 429,
    retryable: true
  },
  bad_message: {
    status: 500,
    retryable: false
  },
  invalid_payload: {
    status: 500,
    retryable: false
  },
  invalid_result: {
    status: 500,
    retryable: false
  },
  invocation_error: {
    status: 500,
    retryable: false
  },
  deserialization_error: {
    status: 500,
    retryable: false
  },
  serialization_error: {
    status: 500,
    retryable: false
  },
  channel_send_failed: {
    status: 500,
    retryable: true
  },
  channel_closed: {
    status: 500,
    retryable: false
  },
  channel_not_found: {
    status: 500,
    retryable: false
  },
  connection_not_found: {
    status: 500,
    retryable: false
  },
  INVALID_NAMESPACE: {
    status: 500,
    retryable: false
  },
  FUNCTION_NAMESPACE_CONFLICT: {
    status: 500,
    retryable: false
  },
  topic_not_set: {
    status: 500,
    retryable: false
  },
  enqueue_error: {
    status: 500,
    retryable: false
  },
  trigger_registration_failed: {
    status: 500,
    retryable: false
  },
  trigger_type_not_found: {
    status: 500,
    retryable: false
  },
  invocation_failed: {
    status: 500,
    retryable: false
  },
  function_not_invokable: {
    status: 500,
    retryable: false
  },
  UNKNOWN: {
    status: 500,
    retryable: false
  },
  TIMEOUT: {
    status: 500,
    retryable: false
  },
  SHUTDOWN: {
    status: 500,
    retryable: false
  },
  http_error: {
    status: 500,
    retryable: false
  },
  http_request_failed: {
    status: 500,
    retryable: false
  },
  invalid_response: {
    status: 500,
    retryable: false
  },
  version_mismatch: {
    status: 500,
    retryable: false
  },
  VALUE_TOO_LARGE: {
    status: 500,
    retryable: false
  },
  GET_ERROR: {
    status: 500,
    retryable: false
  },
  SET_ERROR: {
    status: 500,
    retryable: false
  },
  DELETE_ERROR: {
    status: 500,
    retryable: false
  },
  LIST_ERROR: {
    status: 500,
    retryable: false
  },
  UPDATE_ERROR: {
    status: 500,
    retryable: false
  },
  TRANSACTION_ERROR: {
    status: 500,
    retryable: false
  },
  JSON_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_SET_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_GET_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_DELETE_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_UPDATE_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_LIST_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_LIST_GROUPS_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_LIST_ALL_ERROR: {
    status: 500,
    retryable: false
  },
  STREAM_SEND_ERROR: {
    status: 500,
    retryable: false
  },
  NOT_REGISTERED: {
    status: 500,
    retryable: false
  },
  INVALID_ID: {
    status: 500,
    retryable: false
  },
  SCHEMA_INVALID: {
    status: 500,
    retryable: false
  },
  SCHEMA_UNAVAILABLE: {
    status: 500,
    retryable: false
  },
  EXPAND_FAILED: {
    status: 500,
    retryable: false
  },
  ADAPTER_ERROR: {
    status: 500,
    retryable: false
  },
  NOT_FOUND: {
    status: 500,
    retryable: false
  },
  FORBIDDEN: {
    status: 500,
    retryable: false
  },
  AUTH_ERROR: {
    status: 500,
    retryable: false
  },
  INVALID_ARGUMENTS: {
    status: 500,
    retryable: false
  },
  store_unavailable: {
    status: 500,
    retryable: false
  },
  invalid_json: {
    status: 400,
    retryable: false
  },
  engine_unreachable: {
    status: 500,
    retryable: true
  },
  body_too_large: {
    status: 413,
    retryable: false
  },
  invalid_body: {
    status: 400,
    retryable: false
  },
  unsupported_media_type: {
    status: 415,
    retryable: false
  },
  unauthorized: {
    status: 401,
    retryable: false
  },
  rate_limited: {
    status: 429,
    retryable: true
  },
  CONDITION_NOT_MET: {
    status: 422,
    retryable: false
  },
  MIDDLEWARE_TIMEOUT: {
    status: 504,
    retryable: false
  },
  config_invalid: {
    status: 500,
    retryable: false
  },
  config_conflict: {
    status: 500,
    retryable: true
  },
  manifest_invalid: {
    status: 500,
    retryable: false
  },
  isolation_unavailable: {
    status: 500,
    retryable: false
  },
  launch_failed: {
    status: 500,
    retryable: false
  },
  too_few_descriptors: {
    status: 500,
    retryable: false
  },
  invalid_grant: {
    status: 500,
    retryable: false
  },
  expired: {
    status: 500,
    retryable: false
  },
  install_failed: {
    status: 500,
    retryable: false
  },
  address_in_use: {
    status: 500,
    retryable: false
  },
  address_not_available: {
    status: 500,
    retryable: false
  },
  invalid_schema: {
    status: 500,
    retryable: false
  }
};
var EngineError = class extends Error {
  /** Identifies the error for programs: a code of the engine, or one of your own. */
  code;
  /** The values to act on. */
  details;
  /** Whether the handler did not start and the same call may succeed later. */
  retryable;
  /**
   * The code may be one of your own, such as `out_of_stock`.
   *
   * @param message One sentence for people.
   */
  constructor(code, message, options = {}) {
    super(message, {
      cause: options.cause
    });
    this.name = "EngineError";
    this.code = code;
    this.details = options.details;
    this.retryable = options.retryable ?? meaningOf(code)?.retryable ?? false;
  }
  /** The error as it is sent: without cause and stack. */
  toJSON() {
    return errorBody(this.code, this.message, this.details, this.retryable);
  }
};
var InvocationError = class extends EngineError {
  /** The function that was called. */
  function_id;
  /** Id of the call; `undefined` if it failed before it was sent. */
  invocation_id;
  /** Stack trace of the handler, if it sent one. */
  stacktrace;
  /** Converts an error as it was received. */
  constructor(body, function_id, invocation_id) {
    const options = {
      retryable: body.retryable ?? false
    };
    if (body.details) options.details = body.details;
    super(body.code, `${body.code}: ${body.message}`, options);
    this.name = "InvocationError";
    this.function_id = function_id;
    this.invocation_id = invocation_id;
    this.stacktrace = body.stacktrace;
  }
};
function meaningOf(code) {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code] : void 0;
}
function isTimeout(error) {
  return error instanceof EngineError && (error.code === "timeout" || error.code === "TIMEOUT");
}
function errorBody(code, message, details, retryable = meaningOf(code)?.retryable ?? false) {
  const body = {
    code,
    message
  };
  if (details) body.details = details;
  if (retryable) body.retryable = true;
  return body;
}
function normaliseError(error) {
  if (typeof error === "string") return {
    code: "UNKNOWN",
    message: error
  };
  if (error === null || typeof error !== "object" || Array.isArray(error)) {
    return {
      code: "UNKNOWN",
      message: JSON.stringify(error)
    };
  }
  const { code, message, stacktrace, details, retryable } = error;
  const body = {
    code: typeof code === "string" ? code : "UNKNOWN",
    message: typeof message === "string" ? message : JSON.stringify(message ?? error)
  };
  if (typeof stacktrace === "string") body.stacktrace = stacktrace;
  if (details !== null && typeof details === "object" && !Array.isArray(details)) {
    body.details = details;
  }
  if (typeof retryable === "boolean") body.retryable = retryable;
  return body;
}
function describeThrown(thrown) {
  const message = thrownText(thrown);
  try {
    return thrown instanceof Error ? describeError(thrown, message) : {
      code: "invocation_failed",
      message
    };
  } catch {
    return {
      code: "invocation_failed",
      message
    };
  }
}
function thrownText(thrown) {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "a value without a text was thrown";
  }
}
function describeError(thrown, message) {
  const { code, details, retryable, stack } = thrown;
  const body = {
    code: typeof code === "string" && code !== "" ? code : "invocation_failed",
    message: thrown instanceof InvocationError ? message.slice(thrown.code.length + 2) : message
  };
  if (typeof stack === "string" && stack !== "") body.stacktrace = stack;
  if (details && typeof details === "object" && !Array.isArray(details)) {
    body.details = details;
  }
  if (retryable === true) body.retryable = true;
  return body;
}

// sdk/typescript/wire/limits.ts
var WORKER_PORT = 49134;
var ENGINE_URL_DEFAULT = `ws://127.0.0.1:${WORKER_PORT}`;
var CALL_TIMEOUT_MS = 3e4;
var TIMEOUT_MS_MAX = 6048e5;
var PING_INTERVAL_MS = 2e4;
var SILENCE_MS = 6e4;
var ID_CHARS_MAX = 1024;
var OPEN_TIMEOUT_MS = 1e4;
var BATCH_CHARS_MAX = 64 * 1024;

// sdk/typescript/wire/codec.ts
var NAMED = {
  trigger_type: "id",
  function_id: "id"
};
var FIELDS = {
  registerfunction: {
    id: "id",
    namespace: "namespace?",
    description: "string?",
    request_format: "json?",
    response_format: "json?",
    metadata: "json?",
    invocation: "object?"
  },
  unregisterfunction: {
    id: "id",
    namespace: "namespace?"
  },
  registertriggertype: {
    id: "id",
    description: "string",
    namespace: "namespace?",
    trigger_request_format: "json?",
    call_request_format: "json?"
  },
  unregistertriggertype: {
    id: "id",
    namespace: "namespace?"
  },
  registertrigger: {
    id: "id",
    ...NAMED,
    namespace: "namespace?",
    trigger_namespace: "namespace?",
    metadata: "json?",
    config: "json?"
  },
  triggerregistrationresult: {
    id: "id",
    ...NAMED,
    error: "error?"
  },
  unregistertrigger: {
    id: "id",
    trigger_type: "id?"
  },
  invokefunction: {
    invocation_id: "id?",
    function_id: "id",
    namespace: "namespace?",
    action: "action?",
    timeout_ms: "timeout?",
    metadata: "json?",
    traceparent: "string?",
    baggage: "string?",
    caller: "string?",
    data: "json?"
  },
  invocationresult: {
    invocation_id: "id",
    function_id: "id",
    traceparent: "string?",
    baggage: "string?",
    error: "error?",
    result: "json?"
  },
  invocationprogress: {
    invocation_id: "id",
    data: "json!"
  },
  cancelinvocation: {
    invocation_id: "id",
    reason: "string?"
  },
  reattach: {
    previous_worker_id: "string",
    reattach_token: "string"
  },
  workerregistered: {
    worker_id: "string",
    reattach_token: "string",
    capabilities: "strings"
  },
  registrationrejected: {
    code: "string",
    namespace: "string",
    function_id: "string?",
    worker_name: "string?",
    owner_worker_id: "string?",
    message: "string?"
  },
  error: {
    error: "error"
  },
  ping: {},
  pong: {},
  registerservice: {
    id: "id"
  }
};
var FROM_ENGINE = /* @__PURE__ */ new Set([
  "cancelinvocation",
  "error",
  "invocationprogress",
  "invocationresult",
  "invokefunction",
  "ping",
  "pong",
  "registertrigger",
  "registrationrejected",
  "triggerregistrationresult",
  "unregistertrigger",
  "workerregistered"
]);
function decodeEngineMessage(text) {
  return read(parseMessage(text), FROM_ENGINE);
}
function parseMessage(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw bad(`message: expected JSON: ${thrown.message}`);
  }
  if (!isObject(value)) throw unexpected("message", "an object", value);
  return value;
}
function encodeMessage(message) {
  const fields = message;
  const ordered = {
    type: message.type
  };
  for (const name in FIELDS[message.type]) {
    if (fields[name] !== void 0) ordered[name] = fields[name];
  }
  try {
    return JSON.stringify(ordered);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause);
    throw new EngineError("serialization_error", `${message.type}: not JSON: ${reason}`, {
      cause
    });
  }
}
function read(message, known) {
  const { type } = message;
  if (typeof type !== "string") throw unexpected("type", "a string", type);
  if (!known.has(type)) throw unexpected("type", "a known type of message", type);
  if (isPlain(message, type)) return message;
  const kinds = FIELDS[type];
  const result = {
    type
  };
  for (const name in kinds) {
    const kind = kinds[name];
    const value = Object.hasOwn(message, name) ? message[name] : void 0;
    if (kind === "json!") {
      if (value === void 0) throw unexpected(`${type}.${name}`, "any JSON", value);
      result[name] = value;
    } else if (value !== void 0 && value !== null) {
      const plain = kind.endsWith("?") ? kind.slice(0, -1) : kind;
      result[name] = readField(plain, value, type, name);
    } else if (!kind.endsWith("?")) {
      throw unexpected(`${type}.${name}`, EXPECTED[kind], value);
    }
  }
  return result;
}
function isPlain(message, type) {
  const fields = PLAIN.get(type);
  if (!fields) return false;
  let missing = fields.required;
  for (const name in message) {
    const kind = fields.kinds.get(name);
    const value = message[name];
    switch (kind) {
      case "id":
        missing--;
        if (typeof value !== "string" || value.length > ID_CHARS_MAX) return false;
        break;
      case "id?":
        if (typeof value !== "string" || value.length > ID_CHARS_MAX) return false;
        break;
      case "string?":
        if (typeof value !== "string") return false;
        break;
      case "timeout?":
        if (!isTimeout2(value)) return false;
        break;
      case "json?":
        if (value === null) return false;
        break;
      default:
        if (name !== "type") return false;
    }
  }
  return missing === 0;
}
var PLAIN = new Map([
  "invokefunction",
  "invocationresult",
  "registerfunction",
  "registertrigger"
].map((type) => {
  const fields = Object.entries(FIELDS[type]);
  const required = fields.filter(([, kind]) => !kind.endsWith("?")).length;
  return [
    type,
    {
      kinds: new Map(fields),
      required
    }
  ];
}));
var EXPECTED = {
  action: "an object",
  error: "an error object",
  id: "a string",
  json: "any JSON",
  namespace: "a namespace",
  object: "an object",
  string: "a string",
  strings: "an array of strings",
  timeout: `an integer from 1 to ${TIMEOUT_MS_MAX}`
};
function readField(kind, value, type, name) {
  switch (kind) {
    case "json":
      return value;
    case "error":
      return normaliseError(value);
    case "action":
      return readAction(value, `${type}.${name}`);
    case "namespace":
      if (typeof value === "string" && value !== "" && value.length <= ID_CHARS_MAX) return value;
      if (typeof value === "string" && value !== "") {
        const most = `expected at most ${ID_CHARS_MAX} characters, received ${value.length}`;
        throw new EngineError("INVALID_NAMESPACE", `${type}.${name}: ${most}`);
      }
      throw new EngineError("INVALID_NAMESPACE", `${type}.${name}: expected a string that is not empty, received ${quoted(value)}`);
    case "id":
      if (typeof value === "string" && value.length <= ID_CHARS_MAX) return value;
      if (typeof value !== "string") break;
      throw unexpected(`${type}.${name}`, `at most ${ID_CHARS_MAX} characters`, value.length);
    case "string":
      if (typeof value === "string") return value;
      break;
    case "object":
      if (isObject(value)) return value;
      break;
    case "strings":
      if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
      break;
    case "timeout":
      if (isTimeout2(value)) return value;
  }
  throw unexpected(`${type}.${name}`, EXPECTED[kind], value);
}
function isTimeout2(value) {
  return Number.isInteger(value) && value >= 1 && value <= TIMEOUT_MS_MAX;
}
function readAction(value, path) {
  if (!isObject(value)) throw unexpected(path, EXPECTED.action, value);
  const { type, queue } = value;
  if (type === "void") return {
    type
  };
  if (type !== "enqueue") throw unexpected(`${path}.type`, `"void" or "enqueue"`, type);
  if (typeof queue !== "string") throw unexpected(`${path}.queue`, "a string", queue);
  const action = {
    type,
    queue
  };
  for (const name of ENQUEUE_OPTIONS) {
    const option = value[name];
    if (option !== void 0 && option !== null) action[name] = option;
  }
  return action;
}
var ENQUEUE_OPTIONS = [
  "id",
  "delay_ms",
  "run_at_ms",
  "priority",
  "expires_ms",
  "timeout_ms",
  "keep_result_ms"
];
function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
function unexpected(path, expected, received) {
  return bad(`${path}: expected ${expected}, received ${quoted(received)}`);
}
function bad(message) {
  return new EngineError("bad_message", message);
}
function quoted(value) {
  if (value === void 0) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (isObject(value)) return "an object";
  const text = JSON.stringify(typeof value === "string" ? value.slice(0, 60) : value);
  return typeof value === "string" && value.length > 60 ? `${text}\u2026` : text;
}

// sdk/typescript/arguments.ts
var MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
var SCRATCH_BYTES = 64 * 1024;
var CHAR_BYTES_MAX = 3;
function readUrl(url) {
  if (typeof url !== "string" || !URL.canParse(url)) {
    throw invalid(`Engine address ${showUrl(url)} is not a URL; try ws://127.0.0.1:49134`);
  }
  const parsed = new URL(url);
  if (parsed.protocol === "http:") parsed.protocol = "ws:";
  if (parsed.protocol === "https:") parsed.protocol = "wss:";
  if (parsed.protocol !== "ws:" && parsed.protocol !== "wss:") {
    throw invalid(`Engine address ${showUrl(url)} must start with ws:// or wss://`);
  }
  parsed.hash = "";
  return parsed.href;
}
function withoutSecrets(url) {
  return url.replace(/[?#].*/s, "").replace(/\/\/[^/]*@/, "//");
}
function checkId(what, id, example) {
  if (typeof id !== "string" || id === "") {
    throw invalid(`${what} must be a string such as ${example}, got ${show(id)}`);
  }
  if (id.length > ID_CHARS_MAX) {
    throw invalid(`${what} has ${id.length} characters; at most ${ID_CHARS_MAX} are allowed`);
  }
}
function checkEnqueue({ type: _type, queue, ...options }) {
  checkId("queue", queue, '"mail"');
  const known = ENQUEUE_OPTIONS;
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === void 0) return;
  throw invalid(`${show(unknown)} is not an option of an enqueued call; the options are ${known.join(", ")}`);
}
function checkNamespace(namespace) {
  if (namespace === void 0 || typeof namespace === "string" && namespace !== "") return;
  throw invalid(`A namespace must be a string, got ${show(namespace)}; leave it out for default`);
}
function checkCallable(what, callable) {
  if (typeof callable !== "function") {
    throw invalid(`${what} must be a function, got ${show(callable)}`);
  }
}
function checkTimeout(what, timeout) {
  const isValid = Number.isInteger(timeout) && timeout > 0 && timeout <= TIMEOUT_MS_MAX;
  if (isValid) return;
  const range = `whole milliseconds from 1 to ${TIMEOUT_MS_MAX}`;
  throw invalid(`${what} must be ${range}, got ${show(timeout)}`);
}
function checkOptions(options) {
  checkTimeout("timeoutMs", options.timeoutMs ?? TIMEOUT_MS_MAX);
  checkWhenDisconnected(options.whenDisconnected);
  checkReconnect(options.reconnect ?? {});
  if (options.onError) checkCallable("onError", options.onError);
}
function checkReconnect({ firstMs, maxMs, maxAttempts }) {
  for (const [name, value] of Object.entries({
    firstMs,
    maxMs,
    maxAttempts
  })) {
    if (value === void 0 || value > 0) continue;
    throw invalid(`reconnect.${name} must be a number above 0, got ${show(value)}`);
  }
}
function checkWhenDisconnected(given) {
  if (given === void 0 || given === "wait" || given === "fail") return;
  throw invalid(`whenDisconnected must be "wait" or "fail", got ${show(given)}`);
}
function checkSize(what, frame, limit_bytes = MESSAGE_BYTES_MAX) {
  if (frame.length * CHAR_BYTES_MAX <= limit_bytes) return;
  const bytes = frame.length > limit_bytes ? frame.length : utf8Bytes(frame);
  if (bytes <= limit_bytes) return;
  const message = `${what} takes ${bytes} bytes; at most ${limit_bytes} are allowed`;
  throw new EngineError("serialization_error", message, {
    details: {
      bytes,
      limit_bytes
    }
  });
}
function utf8Bytes(text) {
  const encoder4 = new TextEncoder();
  const scratch = new Uint8Array(SCRATCH_BYTES);
  let bytes = 0;
  for (let at = 0; at < text.length; ) {
    const part = text.slice(at, at + SCRATCH_BYTES);
    const { read: read2, written } = encoder4.encodeInto(part, scratch);
    at += read2;
    bytes += written;
  }
  return bytes;
}
function invalid(message) {
  return new EngineError("INVALID_ARGUMENTS", message);
}
function showUrl(url) {
  return show(typeof url === "string" ? withoutSecrets(url) : url);
}
function show(value) {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 100));
  if (typeof value === "function") return "a function";
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "a list" : "an object";
  }
  return String(value);
}

// sdk/typescript/wire/channels.ts
var CHANNEL_PATH = "/ws/channels/";
var CHANNEL_WRITE_BYTES = 64 * 1024;
var CHANNEL_FRAME_BYTES_MAX = 1024 * 1024;
var CHANNEL_CLOSE = {
  /** The writer has ended the stream, and the reader has all of it; or the reader wants no more. */
  complete: 1e3,
  /** The engine stops. */
  goingAway: 1001,
  /** The end is claimed already. */
  claimed: 1008,
  /** No room for what was sent. */
  tooLarge: 1009,
  /** The stream is not whole: the writer gave up or was lost, or an end never connected. */
  aborted: 4001
};
var STREAM_COMPLETE = "stream_complete";
var READER_CLOSED = "reader_closed";
function isChannelRef(value) {
  if (value === null || typeof value !== "object") return false;
  const { channel_id, access_key, direction } = value;
  return typeof channel_id === "string" && typeof access_key === "string" && (direction === "read" || direction === "write");
}

// sdk/typescript/wire/json_depth.ts
var JSON_DEPTH_MAX = 128;
var QUOTE = 34;
var BACKSLASH = 92;
var BRACE_BIT = 32;
var OPEN = 91 | BRACE_BIT;
var CLOSE = 93 | BRACE_BIT;
function isTooDeep(text, depthMax = JSON_DEPTH_MAX) {
  if (text.length <= depthMax || hasFewBrackets(text, depthMax)) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      for (at++; at < text.length; at++) {
        const inner = text.charCodeAt(at);
        if (inner === QUOTE) break;
        if (inner === BACKSLASH) at++;
      }
      continue;
    }
    const bracket = code | BRACE_BIT;
    if (bracket === OPEN && ++depth > depthMax) return true;
    if (bracket === CLOSE) depth--;
  }
  return false;
}
function hasFewBrackets(text, depthMax) {
  let left = depthMax;
  for (const bracket of [
    "[",
    "{"
  ]) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      if (--left < 0) return false;
    }
  }
  return true;
}

// sdk/typescript/channels/socket.ts
var SOCKET_TIMES = {
  openMs: OPEN_TIMEOUT_MS,
  pingMs: PING_INTERVAL_MS,
  silenceMs: SILENCE_MS
};
var INBOUND_BYTES_MAX = 256 * 1024 * 1024;
var UNSENT_BYTES_MAX = 256 * 1024;
var REASON_BYTES_MAX = 123;
function channelUrl(engineUrl, ref) {
  const address = new URL(engineUrl);
  const base = address.pathname.replace(/\/+$/, "");
  address.pathname = `${base}${CHANNEL_PATH}${encodeURIComponent(ref.channel_id)}`;
  address.searchParams.set("key", ref.access_key);
  address.searchParams.set("dir", ref.direction);
  return address.href;
}
function shortReason(reason) {
  const bytes = new TextEncoder().encode(reason);
  if (bytes.length <= REASON_BYTES_MAX) return reason;
  return new TextDecoder().decode(bytes.subarray(0, REASON_BYTES_MAX)).replace(/\ufffd+$/, "");
}

// sdk/typescript/channels/end.ts
var EndConnection = class {
  ref;
  #setup;
  #events;
  #socket;
  #opening;
  #isOpen = false;
  #isOver = false;
  constructor(ref, setup, events) {
    this.ref = {
      channel_id: ref.channel_id,
      access_key: ref.access_key,
      direction: ref.direction
    };
    this.#setup = setup;
    this.#events = events;
  }
  /** The socket once it is open. */
  get socket() {
    return this.#isOpen && !this.#isOver ? this.#socket : void 0;
  }
  get isOver() {
    return this.#isOver;
  }
  /** Connects the first time; settles when it is open or `closed` was reported. */
  connect() {
    return this.#opening ??= new Promise((resolve) => {
      if (this.#isOver) return resolve();
      this.#setup.opened(this);
      const events = {
        opened: () => {
          this.#isOpen = true;
          resolve();
        },
        message: (data) => this.#events.message(data),
        closed: (code, reason) => {
          this.#closed(this.#errorOf(code, reason));
          resolve();
        }
      };
      this.#socket = this.#setup.open(channelUrl(this.#setup.url, this.ref), events);
    });
  }
  /** Ends the connection now, with this error. */
  end(error) {
    this.#closed(error);
    this.#socket?.terminate();
  }
  #closed(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#setup.closed(this);
    this.#events.closed(error);
  }
  #errorOf(code, reason) {
    const { channel_id } = this.ref;
    const details = {
      channel_id,
      close_code: code,
      reason
    };
    const isRegular = code === CHANNEL_CLOSE.complete || code === 1005;
    if (!this.#isOpen) {
      const isUnknown = reason === "HTTP 404";
      const message2 = isUnknown ? `There is no channel ${channel_id}, or the key of its reference is wrong` : `Cannot connect to channel ${channel_id}: ${reason}`;
      return new EngineError(isUnknown ? "channel_not_found" : "engine_unreachable", message2, {
        details
      });
    }
    if (code === CHANNEL_CLOSE.claimed) {
      const message2 = `This end of channel ${channel_id} is in use already`;
      return new EngineError("channel_not_found", message2, {
        details
      });
    }
    if (isRegular && reason !== READER_CLOSED) return void 0;
    if (isRegular) {
      const message2 = `The reader of channel ${channel_id} has left`;
      return new EngineError("channel_closed", message2, {
        details
      });
    }
    const message = `Channel ${channel_id} ended early: ${reason || `close code ${code}`}`;
    return new EngineError("channel_closed", message, {
      details
    });
  }
};

// sdk/typescript/channels/reader.ts
var HELD_BYTES_MAX = 256 * 1024;
var MESSAGE_BYTES = 256;
var COLLECTED_BYTES_MAX = 64 * 1024 * 1024;
var encoder = new TextEncoder();
var ChannelReader = class {
  #connection;
  #held = [];
  #heldBytes = 0;
  #isPaused = false;
  #isEnded = false;
  #error;
  #wake;
  #readable;
  /** Created by `Worker.createChannel()`, and from references inside payloads. */
  constructor(ref, setup) {
    this.#connection = new EndConnection(ref, setup, {
      message: (data) => this.#message(data),
      closed: (error) => {
        this.#isEnded = true;
        this.#error ??= error;
        this.#wake?.();
      }
    });
  }
  /** The reference to this end, as it travels in payloads. */
  get ref() {
    return this.#connection.ref;
  }
  /**
   * The bytes as a stream, such as for a `Response`; text messages are encoded as UTF-8. Reads in
   * place of the iteration, not beside it.
   */
  get readable() {
    return this.#readable ??= new ReadableStream({
      pull: async (controller) => {
        const part = await this.read();
        if (part === void 0) controller.close();
        else controller.enqueue(typeof part === "string" ? encoder.encode(part) : part);
      },
      cancel: () => this.cancel()
    }, {
      highWaterMark: 0
    });
  }
  /** The next message; `undefined` at the end of the stream. One read at a time. */
  async read() {
    while (this.#held.length === 0) {
      if (this.#isEnded) {
        if (this.#error) throw this.#error;
        return void 0;
      }
      if (this.#wake) {
        throw new EngineError("INVALID_ARGUMENTS", "A read of this channel is waiting already");
      }
      if (this.#connection.socket) await new Promise((resolve) => this.#wake = resolve);
      else await this.#connection.connect();
      this.#wake = void 0;
    }
    return this.#take();
  }
  /** All that the writer sends, as bytes; at most `maxBytes`, by default 64 MiB. */
  async bytes(maxBytes = COLLECTED_BYTES_MAX) {
    const parts = [];
    let size = 0;
    for await (const part of this) {
      const bytes = typeof part === "string" ? encoder.encode(part) : part;
      size += bytes.length;
      if (size > maxBytes) {
        const message = `Channel ${this.ref.channel_id} carries over ${maxBytes} bytes`;
        throw new EngineError("body_too_large", message);
      }
      parts.push(bytes);
    }
    const all = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
  /** All that the writer sends, as one text; at most `maxBytes`, by default 64 MiB. */
  async text(maxBytes = COLLECTED_BYTES_MAX) {
    return new TextDecoder().decode(await this.bytes(maxBytes));
  }
  /** Ends the channel: the writer learns that nothing more is read. Never rejects. */
  async cancel() {
    this.#held = [];
    this.#heldBytes = 0;
    await this.#connection.connect();
    this.#connection.socket?.finish(1e3, "channel_close");
    this.#connection.end(new EngineError("channel_closed", `Channel ${this.ref.channel_id} was cancelled here`));
  }
  /** Reads to the end; leaving the loop early cancels. */
  async *[Symbol.asyncIterator]() {
    try {
      for (; ; ) {
        const part = await this.read();
        if (part === void 0) return;
        yield part;
      }
    } finally {
      if (!this.#isEnded || this.#held.length > 0) await this.cancel();
    }
  }
  /** The reference: a reader inside a payload arrives as a reader. */
  toJSON() {
    return this.ref;
  }
  #message(data) {
    this.#held.push(data);
    this.#heldBytes += data.length + MESSAGE_BYTES;
    if (this.#heldBytes > HELD_BYTES_MAX && !this.#isPaused) {
      this.#isPaused = true;
      this.#connection.socket?.pause();
    }
    this.#wake?.();
  }
  #take() {
    const data = this.#held.shift();
    this.#heldBytes -= data.length + MESSAGE_BYTES;
    if (this.#isPaused && this.#heldBytes <= HELD_BYTES_MAX / 2) {
      this.#isPaused = false;
      this.#connection.socket?.resume();
    }
    return data;
  }
};

// sdk/typescript/channels/writer.ts
var SENT = Promise.resolve();
var ChannelWriter = class {
  #connection;
  #left = new AbortController();
  /** The last write; the next one follows it. */
  #last = Promise.resolve();
  #waiting = 0;
  #isClosing = false;
  #isClosed = false;
  #error;
  #wake;
  #writable;
  /** Created by `Worker.createChannel()`, and from references inside payloads. */
  constructor(ref, setup) {
    this.#connection = new EndConnection(ref, setup, {
      message() {
      },
      closed: (error) => this.#closed(error)
    });
  }
  /** The reference to this end, as it travels in payloads. */
  get ref() {
    return this.#connection.ref;
  }
  /** Aborted when nothing more can be written: the reader has left, or the connection is lost. */
  get signal() {
    return this.#left.signal;
  }
  /** This end as a stream, such as for `pipeTo()`. */
  get writable() {
    return this.#writable ??= new WritableStream({
      write: (data) => this.write(data),
      close: () => this.close(),
      abort: (reason) => this.abort(reason)
    });
  }
  /**
   * Sends bytes, or a string as one text message. Resolves when more may be written; writes that
   * are not awaited keep their order, and the promise of one that fails rejects.
   *
   * @throws {EngineError} `channel_closed`, `channel_not_found`, `engine_unreachable`,
   * `INVALID_ARGUMENTS`.
   */
  write(data) {
    if (typeof data !== "string" && !(data instanceof Uint8Array)) {
      const message = "A channel carries strings and Uint8Array; encode other values first";
      return Promise.reject(new EngineError("INVALID_ARGUMENTS", message));
    }
    if (this.#isClosing) {
      return Promise.reject(new EngineError("INVALID_ARGUMENTS", "The writer is closed"));
    }
    return this.#sendNow(data) ?? this.#queue(() => this.#send(data));
  }
  /** Sends what needs no wait and no cutting; most parts of a stream are such. */
  #sendNow(data) {
    const { socket } = this.#connection;
    if (!socket || this.#waiting > 0 || this.#error) return void 0;
    if (typeof data !== "string" && data.length > CHANNEL_WRITE_BYTES) return void 0;
    const sent = socket.send(data);
    return sent ? this.#queue(() => this.#sent(sent)) : SENT;
  }
  /**
   * Ends the stream: resolves when the engine has all of it, which takes as long as the reader
   * takes for all but the last part. Has no effect the second time.
   */
  close() {
    if (this.#isClosing) return this.#last;
    this.#isClosing = true;
    return this.#queue(async () => {
      await this.#connected();
      this.#connection.socket.finish(CHANNEL_CLOSE.complete, STREAM_COMPLETE);
      while (!this.#connection.isOver) await this.#wait();
      if (this.#error) throw this.#error;
    });
  }
  /** Gives up: the reader gets what was sent, then an error with the reason. Never rejects. */
  async abort(reason) {
    if (this.#isClosed) return;
    this.#isClosing = true;
    const text = reason === void 0 ? "the writer gave up" : thrownText(reason);
    await this.#connection.connect();
    this.#connection.socket?.finish(CHANNEL_CLOSE.aborted, text);
    this.#closed(new EngineError("channel_closed", `Channel ${this.ref.channel_id} was aborted: ${text}`));
  }
  /** Calls {@linkcode ChannelWriter.close} at the end of an `await using` block. */
  async [Symbol.asyncDispose]() {
    if (!this.#isClosed) await this.close();
  }
  /** The reference: a writer inside a payload arrives as a writer. */
  toJSON() {
    return this.ref;
  }
  /** Runs tasks one after another; at once if none runs. */
  #queue(task) {
    const isFirst = this.#waiting++ === 0;
    const done = isFirst ? task() : this.#last.then(task, task);
    const ended = () => void this.#waiting--;
    this.#last = done;
    done.then(ended, ended);
    return done;
  }
  async #send(data) {
    await this.#connected();
    const step = CHANNEL_WRITE_BYTES;
    if (typeof data === "string" || data.length <= step) return await this.#sendPart(data);
    for (let at = 0; at < data.length; at += step) {
      await this.#sendPart(data.subarray(at, at + step));
    }
  }
  async #sendPart(data) {
    if (this.#error) throw this.#error;
    await this.#sent(this.#connection.socket?.send(data));
  }
  async #sent(sent) {
    if (sent) await Promise.race([
      sent,
      this.#wait()
    ]);
    if (this.#error) throw this.#error;
  }
  async #connected() {
    if (!this.#connection.socket) await this.#connection.connect();
    if (this.#error) throw this.#error;
  }
  /** Settles when the connection ends. */
  #wait() {
    return new Promise((resolve) => this.#wake = resolve);
  }
  #closed(error) {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { channel_id } = this.ref;
    this.#error = error ?? (this.#isClosing ? void 0 : new EngineError("channel_closed", `Channel ${channel_id} was closed by the engine`));
    this.#wake?.();
    if (this.#error) this.#left.abort(this.#error);
  }
};

// sdk/typescript/channels/channels.ts
var CREATE_CHANNEL = "engine::channels::create";
var ACCESS_KEY = '"access_key"';
var Channels = class {
  #setup;
  #open = /* @__PURE__ */ new Set();
  #ended;
  constructor(url, open) {
    this.#setup = {
      url,
      open,
      opened: (end3) => {
        this.#open.add(end3);
        if (this.#ended) queueMicrotask(() => end3.end(this.#ended));
      },
      closed: (end3) => void this.#open.delete(end3)
    };
  }
  /** The ends of a channel that the engine has created. */
  channel({ writer, reader }) {
    return {
      writer: this.end(writer),
      reader: this.end(reader)
    };
  }
  /** The end of a reference; it connects when it is used. */
  end(ref) {
    return ref.direction === "read" ? new ChannelReader(ref, this.#setup) : new ChannelWriter(ref, this.#setup);
  }
  /** Replaces references in a parsed value, which it changes, by ends. */
  revive(value) {
    return this.#revive(value, JSON_DEPTH_MAX + 1);
  }
  /** Ends all connections; ends that connect later fail, too. */
  close() {
    this.#ended ??= new EngineError("SHUTDOWN", "engine client is shutting down");
    for (const end3 of [
      ...this.#open
    ]) end3.end(this.#ended);
  }
  #revive(value, levels) {
    if (typeof value !== "object" || value === null || levels === 0) return value;
    if (isChannelRef(value)) return this.end(value);
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) value[i] = this.#revive(value[i], levels - 1);
      return value;
    }
    for (const key of Object.keys(value)) {
      const part = value[key];
      const revived = this.#revive(part, levels - 1);
      if (revived !== part) Object.defineProperty(value, key, {
        value: revived
      });
    }
    return value;
  }
};
function mayHoldRefs(frame) {
  return frame.includes(ACCESS_KEY);
}

// sdk/typescript/browser_socket.ts
var BrowserSocket = class {
  #socket;
  #events;
  #timer;
  // Browsers do not report why a connection failed; Deno does.
  #problem = "no connection";
  #isOver = false;
  /** `protocols` are offered; a browser fails the connection if the server selects none of them. */
  constructor(url, events, protocols = []) {
    const socket = this.#socket = new WebSocket(url, [
      ...protocols
    ]);
    this.#events = events;
    this.#timer = setTimeout(() => this.end(`no answer within ${OPEN_TIMEOUT_MS} ms`), OPEN_TIMEOUT_MS);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      clearTimeout(this.#timer);
      this.#problem = "";
      if (!this.#isOver) events.opened();
    };
    socket.onmessage = ({ data }) => {
      if (this.#isOver) return;
      if (typeof data === "string") events.text(data);
      else events.binary(new Uint8Array(data));
    };
    socket.onerror = (event) => {
      this.#problem = event.message || this.#problem;
    };
    socket.onclose = ({ code, reason }) => this.#closed(code || 1006, reason || this.#problem);
  }
  /** Bytes that are not sent yet. */
  get queuedBytes() {
    return this.#socket.bufferedAmount;
  }
  /** Whether messages can be sent. */
  get isOpen() {
    return !this.#isOver && this.#socket.readyState === WebSocket.OPEN;
  }
  /** Sends a message; one that is not open does nothing. */
  send(message) {
    if (this.isOpen) this.#socket.send(message);
  }
  /** Closes when all is sent; `closed` follows. */
  close(code, reason) {
    if (!this.#isOver) this.#socket.close(code, reason);
  }
  /** Closes, and is over at once. */
  end(reason) {
    if (this.#isOver) return;
    this.#socket.close();
    this.#closed(1006, reason);
  }
  #closed(code, reason) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#events.closed(code, reason);
  }
};

// sdk/typescript/wire/loopback.ts
function isLoopback(host) {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

// sdk/typescript/channels/client_frames.ts
var OPCODE = {
  more: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10
};
var KEPT_BYTES = 1024 * 1024;
var FIRST_BYTES = 1024;
var HEADER_BYTES_MAX = 14;
var MASK_BYTES = 4;
var READ_BYTES_FIRST = 4 * 1024;
var READ_BYTES_MAX = 256 * 1024;
var SHARED_PART = 1 / 4;
var CONTROL_BYTES_MAX = 125;
var NOTHING = new Uint8Array();
var FrameBuffer = class {
  #memory = NOTHING;
  #length = 0;
  /** Bytes that wait. */
  get length() {
    return this.#length;
  }
  /** Adds a whole message, or a control frame; copies it. */
  add(opcode, payload) {
    const bytes = payload.length;
    this.#reserve(HEADER_BYTES_MAX + bytes);
    const memory = this.#memory;
    let at = this.#length;
    memory[at++] = 128 | opcode;
    if (bytes < 126) memory[at++] = 128 | bytes;
    else if (bytes < 65536) {
      memory[at++] = 128 | 126;
      memory[at++] = bytes >>> 8;
      memory[at++] = bytes & 255;
    } else {
      memory[at++] = 128 | 127;
      new DataView(memory.buffer).setBigUint64(at, BigInt(bytes));
      at += 8;
    }
    memory.fill(0, at, at + MASK_BYTES);
    memory.set(payload, at + MASK_BYTES);
    this.#length = at + MASK_BYTES + bytes;
  }
  /** The bytes to write; valid until the buffer changes. */
  bytes() {
    return this.#memory.subarray(0, this.#length);
  }
  /** Drops everything. */
  clear() {
    this.#length = 0;
    if (this.#memory.length > KEPT_BYTES) this.#memory = NOTHING;
  }
  #reserve(bytes) {
    const needed = this.#length + bytes;
    if (needed <= this.#memory.length) return;
    const larger = new Uint8Array(Math.max(FIRST_BYTES, needed, this.#memory.length * 2));
    larger.set(this.bytes());
    this.#memory = larger;
  }
};
var UTF_8 = new TextDecoder();
var EngineFrames = class {
  #events;
  #bytesMax;
  #memory = NOTHING;
  #size = READ_BYTES_FIRST;
  #start = 0;
  #end = 0;
  /** Bytes of the frame that is incomplete; 0: not known. */
  #needs = 0;
  /** A part of the memory belongs to a receiver. */
  #isShared = false;
  #state = "reading";
  /** The fragments of a message, and its kind. */
  #parts = [];
  #partBytes = 0;
  #opcode = OPCODE.more;
  /** `bytesMax`: the largest message. */
  constructor(events, bytesMax) {
    this.#events = events;
    this.#bytesMax = bytesMax;
  }
  /** Begins with bytes that were read before. */
  begin(bytes) {
    this.#memory = Uint8Array.from(bytes);
    this.#end = bytes.length;
  }
  /** Where the next read goes. */
  room() {
    const waiting = this.#end - this.#start;
    const needed = Math.max(waiting + 1, this.#needs);
    const isFree = !this.#isShared && this.#memory.length >= Math.max(needed, this.#size);
    const isRoomy = this.#memory.length - this.#start >= needed && this.#memory.length - this.#end >= this.#size / 4;
    if (waiting > 0 && isRoomy) return this.#memory.subarray(this.#end);
    if (isFree) this.#memory.copyWithin(0, this.#start, this.#end);
    else {
      const memory = new Uint8Array(Math.max(this.#size, needed));
      memory.set(this.#memory.subarray(this.#start, this.#end));
      this.#memory = memory;
      this.#isShared = false;
    }
    this.#start = 0;
    this.#end = waiting;
    return this.#memory.subarray(this.#end);
  }
  /** Adds bytes that were read into {@linkcode room}. */
  added(count) {
    this.#end += count;
    if (this.#end === this.#memory.length) {
      this.#size = Math.min(READ_BYTES_MAX, this.#size * 4);
    }
  }
  /** Reports all complete messages, until it is paused or over. */
  read() {
    while (this.#state === "reading" && this.#readFrame()) ;
  }
  /** Stops reporting until {@linkcode resume} and the next {@linkcode read}. */
  pause() {
    if (this.#state === "reading") this.#state = "paused";
  }
  /** See {@linkcode pause}. */
  resume() {
    if (this.#state === "paused") this.#state = "reading";
  }
  /** Stops reporting for good. */
  stop() {
    this.#state = "over";
  }
  /** Reports one frame; `false` when it is incomplete. */
  #readFrame() {
    const memory = this.#memory;
    const there = this.#end - this.#start;
    if (there < 2) return false;
    const first = memory[this.#start];
    const short2 = memory[this.#start + 1];
    if (short2 >= 128) return this.#break("a frame of the engine has a mask");
    const header = short2 < 126 ? 2 : short2 === 126 ? 4 : 10;
    if (there < header) return false;
    const bytes = this.#payloadBytes(short2);
    if (bytes + this.#partBytes > this.#bytesMax) {
      return this.#break(`a message has more than ${this.#bytesMax} bytes`);
    }
    this.#needs = header + bytes;
    if (there < this.#needs) return false;
    const from = this.#start + header;
    this.#start += this.#needs;
    this.#needs = 0;
    this.#frame(first, memory.subarray(from, from + bytes));
    return true;
  }
  #payloadBytes(short2) {
    if (short2 < 126) return short2;
    const at = this.#start + 2;
    if (short2 === 126) return this.#memory[at] << 8 | this.#memory[at + 1];
    return Number(new DataView(this.#memory.buffer).getBigUint64(at));
  }
  #frame(first, payload) {
    const opcode = first & 15;
    const isWhole = first >= 128;
    if ((first & 112) !== 0) return void this.#break("a frame has a reserved bit");
    if (opcode >= OPCODE.close) return this.#control(opcode, isWhole, payload);
    const isMore = opcode === OPCODE.more;
    if (opcode > OPCODE.binary || isMore !== (this.#opcode !== OPCODE.more)) {
      return void this.#break("a frame is out of order");
    }
    if (isWhole && !isMore) return this.#message(opcode, payload);
    if (!isMore) this.#opcode = opcode;
    this.#parts.push(payload.slice());
    this.#partBytes += payload.length;
    if (isWhole) this.#finishMessage();
  }
  #control(opcode, isWhole, payload) {
    if (!isWhole || payload.length > CONTROL_BYTES_MAX) {
      return void this.#break("a control frame is too large");
    }
    if (opcode === OPCODE.ping) return this.#events.ping(payload.slice());
    if (opcode === OPCODE.pong) return this.#events.pong();
    if (opcode !== OPCODE.close) return void this.#break(`a frame has the opcode ${opcode}`);
    this.#state = "over";
    const code = payload.length < 2 ? 1005 : payload[0] << 8 | payload[1];
    this.#events.closeFrame(code, UTF_8.decode(payload.subarray(2)));
  }
  #message(opcode, payload) {
    if (opcode === OPCODE.text) return this.#events.text(UTF_8.decode(payload));
    const isLarge = payload.length >= this.#memory.length * SHARED_PART;
    this.#isShared ||= isLarge;
    this.#events.binary(isLarge ? payload : payload.slice());
  }
  #finishMessage() {
    const whole = new Uint8Array(this.#partBytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    const opcode = this.#opcode;
    this.#parts = [];
    this.#partBytes = 0;
    this.#opcode = OPCODE.more;
    if (opcode === OPCODE.text) this.#events.text(UTF_8.decode(whole));
    else this.#events.binary(whole);
  }
  #break(reason) {
    this.#state = "over";
    this.#events.violation(reason);
    return false;
  }
};

// sdk/typescript/channels/deno_socket.ts
var HEAD_BYTES_MAX = 16 * 1024;
var KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
var KEY_BYTES = 16;
var encoder2 = new TextEncoder();
function isForDeno(url) {
  const { protocol, hostname } = new URL(url);
  return protocol === "ws:" && isLoopback(hostname) && denoGlobal()?.connect !== void 0;
}
function openDenoSocket(url, events, times = SOCKET_TIMES) {
  return new DenoSocket(new URL(url), events, times);
}
var DenoSocket = class {
  #events;
  #times;
  #frames;
  #stream;
  #state = "opening";
  /** Frames that wait, and those that are being written. */
  #waiting = new FrameBuffer();
  #sent = new FrameBuffer();
  #isWriting = false;
  #isPaused = false;
  /** The end as the engine said it. */
  #end;
  #problem = "";
  #silentMs = 0;
  /** Resolves when more may be sent. */
  #room;
  #wake;
  #openTimer;
  #pingTimer;
  constructor(url, events, times) {
    this.#events = events;
    this.#times = times;
    this.#frames = new EngineFrames({
      text: (text) => this.#events.message(text),
      binary: (bytes) => this.#events.message(bytes),
      ping: (payload) => this.#add(OPCODE.pong, payload),
      pong() {
      },
      closeFrame: (code, reason) => this.#closeFrame(code, reason),
      violation: (reason) => this.#lost(reason)
    }, INBOUND_BYTES_MAX);
    this.#openTimer = setTimeout(() => {
      this.#lost(`no answer within ${this.#times.openMs} ms`);
    }, this.#times.openMs);
    this.#run(url).catch((error) => this.#lost(this.#problem || thrownText(error)));
  }
  send(data) {
    if (this.#state !== "open") return void 0;
    if (typeof data === "string") this.#add(OPCODE.text, encoder2.encode(data));
    else this.#add(OPCODE.binary, data);
    if (this.#waiting.length <= UNSENT_BYTES_MAX) return void 0;
    return (this.#room ??= Promise.withResolvers()).promise;
  }
  pause() {
    this.#isPaused = true;
    this.#frames.pause();
  }
  resume() {
    this.#isPaused = false;
    this.#silentMs = 0;
    this.#frames.resume();
    this.#wake?.();
  }
  finish(code, reason) {
    if (this.#state === "opening") return this.#lost("ended");
    if (this.#state !== "open") return;
    this.#sendClose(code, shortReason(reason));
    this.#state = "finishing";
    this.resume();
  }
  terminate() {
    this.#lost("ended");
  }
  /** Connects, then reads until the connection ends. */
  async #run(url) {
    const stream = await connect(url);
    if (this.#state === "over") return stream.close();
    this.#stream = stream;
    attempt(() => stream.setNoDelay(true));
    if (!await this.#upgrade(stream, url)) return;
    clearTimeout(this.#openTimer);
    this.#state = "open";
    this.#pingTimer = setInterval(() => this.#heartbeat(), this.#times.pingMs);
    this.#events.opened();
    for (; ; ) {
      this.#frames.read();
      while (this.#isPaused && !this.#isOver) {
        await new Promise((resolve) => this.#wake = resolve);
        this.#frames.read();
      }
      if (this.#isOver) return;
      const count = await stream.read(this.#frames.room());
      if (count === null) return this.#lost("connection lost");
      this.#silentMs = 0;
      this.#frames.added(count);
    }
  }
  /** Sends the request and reads the response; what follows it is left to the frames. */
  async #upgrade(stream, url) {
    const key = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(KEY_BYTES))));
    const accept = acceptOf(key);
    await writeAll(stream, upgradeRequest(url, key));
    const memory = new Uint8Array(HEAD_BYTES_MAX);
    for (let end3 = 0; end3 < HEAD_BYTES_MAX; ) {
      const count = await stream.read(memory.subarray(end3));
      if (count === null) break;
      end3 += count;
      const head = new TextDecoder("latin1").decode(memory.subarray(0, end3));
      const headBytes = head.indexOf("\r\n\r\n") + 4;
      if (headBytes < 4) continue;
      const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? "";
      const accepted = /\r\nsec-websocket-accept: *(\S+)/i.exec(head)?.[1];
      if (status === "101" && accepted === await accept) {
        this.#frames.begin(memory.subarray(headBytes, end3));
        return !this.#isOver;
      }
      this.#lost(status === "101" ? "the upgrade was not accepted" : `HTTP ${status}`);
      return false;
    }
    this.#lost("the response to the upgrade is not HTTP");
    return false;
  }
  get #isOver() {
    return this.#state === "over";
  }
  #add(opcode, payload) {
    this.#waiting.add(opcode, payload);
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#write(this.#stream).catch((error) => this.#lost(thrownText(error)));
  }
  async #write(stream) {
    while (this.#waiting.length > 0) {
      const frames = this.#waiting;
      this.#waiting = this.#sent;
      this.#sent = frames;
      this.#room?.resolve();
      this.#room = void 0;
      await writeAll(stream, frames.bytes());
      frames.clear();
    }
    this.#isWriting = false;
    if (this.#end) this.#over(this.#end.code, this.#end.reason);
  }
  #sendClose(code, reason) {
    const payload = code === 1005 ? [] : [
      code >> 8,
      code & 255,
      ...encoder2.encode(reason)
    ];
    this.#add(OPCODE.close, Uint8Array.from(payload));
  }
  /** The engine has closed: it gets the own close frame behind all that was sent before. */
  #closeFrame(code, reason) {
    this.#end = {
      code,
      reason
    };
    const isFinished = this.#state === "finishing";
    this.#state = "finishing";
    if (!isFinished) this.#sendClose(code, reason);
    if (!this.#isWriting) this.#over(code, reason);
  }
  /** Pings also while it does not read, so that the engine knows that this side lives. */
  #heartbeat() {
    if (this.#isPaused) this.#silentMs = 0;
    else this.#silentMs += this.#times.pingMs;
    if (this.#silentMs < this.#times.silenceMs) return this.#add(OPCODE.ping, new Uint8Array());
    this.#lost(`nothing received for ${this.#times.silenceMs} ms`);
  }
  #lost(reason) {
    this.#over(this.#end?.code ?? 1006, this.#end?.reason ?? reason);
  }
  #over(code, reason) {
    if (this.#isOver) return;
    this.#state = "over";
    clearTimeout(this.#openTimer);
    clearInterval(this.#pingTimer);
    this.#frames.stop();
    attempt(() => this.#stream?.close());
    this.#room?.resolve();
    this.#wake?.();
    this.#events.closed(code, reason);
  }
};
async function connect({ hostname, port }) {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const open = (hostname2) => {
    return denoGlobal().connect({
      hostname: hostname2,
      port: Number(port || 80)
    });
  };
  if (host !== "localhost") return await open(host);
  return await open("127.0.0.1").catch(() => open("::1"));
}
function upgradeRequest({ host, pathname, search }, key) {
  const lines = [
    `GET ${pathname}${search} HTTP/1.1`,
    `Host: ${host}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${key}`,
    "Sec-WebSocket-Version: 13"
  ];
  return encoder2.encode(`${lines.join("\r\n")}\r
\r
`);
}
async function acceptOf(key) {
  const digest = await crypto.subtle.digest("SHA-1", encoder2.encode(key + KEY_SUFFIX));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}
async function writeAll(stream, bytes) {
  for (let at = 0; at < bytes.length; ) {
    at += await stream.write(at === 0 ? bytes : bytes.subarray(at));
  }
}

// sdk/typescript/channels/ws_socket.ts
var CLOSE_TIMEOUT_MS = 2147483647;
function openWsSocket(url, events, times = SOCKET_TIMES) {
  return new WsSocket(url, events, times);
}
var WsSocket = class {
  #events;
  #times;
  #socket;
  #isPaused = false;
  #isOver = false;
  #problem = "";
  #silentMs = 0;
  #openTimer;
  #pingTimer;
  constructor(url, events, times) {
    this.#events = events;
    this.#times = times;
    this.#connect(url).catch((error) => this.#end(1006, String(error)));
  }
  send(data) {
    const socket = this.#socket;
    if (!socket || this.#isOver) return void 0;
    if (socket.bufferedAmount + data.length <= UNSENT_BYTES_MAX) {
      socket.send(data);
      return void 0;
    }
    return new Promise((resolve) => socket.send(data, () => resolve()));
  }
  pause() {
    this.#isPaused = true;
    this.#socket?.pause();
  }
  resume() {
    this.#isPaused = false;
    this.#silentMs = 0;
    this.#socket?.resume();
  }
  finish(code, reason) {
    if (this.#isOver) return;
    this.resume();
    this.#socket?.close(code, shortReason(reason));
  }
  terminate() {
    this.#socket?.terminate();
    this.#end(1006, "ended");
  }
  async #connect(url) {
    const module = await Promise.resolve().then(() => (init_wrapper(), wrapper_exports));
    if (this.#isOver) return;
    const WebSocket3 = module.default;
    const socket = new WebSocket3(url, [], {
      perMessageDeflate: false,
      maxPayload: INBOUND_BYTES_MAX,
      closeTimeout: CLOSE_TIMEOUT_MS,
      ...isLoopback(new URL(url).hostname) && {
        generateMask: withoutMask
      }
    });
    this.#socket = socket;
    this.#openTimer = setTimeout(() => {
      this.#problem = `no answer within ${this.#times.openMs} ms`;
      socket.terminate();
    }, this.#times.openMs);
    socket.on("open", () => this.#opened());
    socket.on("message", (data, isBinary) => this.#message(data, isBinary));
    socket.on("ping", () => this.#silentMs = 0);
    socket.on("pong", () => this.#silentMs = 0);
    socket.on("error", (error) => this.#problem ||= describe(error));
    socket.on("close", (code, reason) => {
      this.#end(code, new TextDecoder().decode(reason) || this.#problem);
    });
  }
  #opened() {
    clearTimeout(this.#openTimer);
    if (this.#isOver) return;
    this.#pingTimer = setInterval(() => this.#heartbeat(), this.#times.pingMs);
    this.#events.opened();
  }
  #message(data, isBinary) {
    this.#silentMs = 0;
    if (this.#isOver) return;
    if (!isBinary) return this.#events.message(data.toString());
    this.#events.message(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  /** Pings also while it does not read, so that the engine knows that this side lives. */
  #heartbeat() {
    if (this.#isPaused) this.#silentMs = 0;
    else this.#silentMs += this.#times.pingMs;
    if (this.#silentMs < this.#times.silenceMs) return this.#socket?.ping();
    this.#problem = `nothing received for ${this.#times.silenceMs} ms`;
    this.#socket?.terminate();
  }
  #end(code, reason) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#openTimer);
    clearInterval(this.#pingTimer);
    this.#events.closed(code, reason);
  }
};
function withoutMask(mask) {
  mask.fill(0);
}
function describe(error) {
  const { message = String(error), errors } = error;
  const text = message || errors?.[0]?.message || "no connection";
  return text.replace(/^Unexpected server response: (\d+)$/, "HTTP $1");
}

// sdk/typescript/channels/open_socket.ts
var POLL_MS = 10;
var openSocket = (url, events) => {
  if (isForDeno(url)) return openDenoSocket(url, events);
  return processGlobal() ? openWsSocket(url, events) : openBrowserSocket(url, events);
};
var openBrowserSocket = (url, { opened, message, closed }) => {
  const socket = new BrowserSocket(url, {
    opened,
    text: message,
    binary: message,
    closed
  });
  const drained = async () => {
    while (socket.isOpen && socket.queuedBytes > UNSENT_BYTES_MAX) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  return {
    send(data) {
      socket.send(data);
      return socket.queuedBytes > UNSENT_BYTES_MAX ? drained() : void 0;
    },
    pause() {
    },
    resume() {
    },
    finish: (code, reason) => socket.close(code, shortReason(reason)),
    terminate: () => socket.end("ended")
  };
};

// sdk/typescript/wire/member_text.ts
var BACKSLASH2 = 92;
var JsonText = class {
  text;
  constructor(text) {
    this.text = text;
  }
};
function memberText(json, name) {
  let at = afterSpace(json, 0);
  if (json[at] !== "{") return void 0;
  let found;
  for (; ; ) {
    at = afterSpace(json, at + 1);
    if (json[at] !== '"') return found;
    const keyEnd = stringEnd(json, at);
    const isIt = keyOf(json, at, keyEnd) === name;
    const start = afterSpace(json, afterSpace(json, keyEnd) + 1);
    const end3 = valueEnd(json, start);
    if (isIt) found = json.slice(start, end3);
    at = afterSpace(json, end3);
    if (json[at] !== ",") return found;
  }
}
function keyOf(json, start, end3) {
  const inside = json.slice(start + 1, end3 - 1);
  return inside.includes("\\") ? JSON.parse(json.slice(start, end3)) : inside;
}
function afterSpace(json, from) {
  let at = from;
  while (isSpace(json.charCodeAt(at))) at++;
  return at;
}
function isSpace(code) {
  return code === 32 || code === 10 || code === 13 || code === 9;
}
function valueEnd(json, start) {
  const first = json[start];
  if (first === '"') return stringEnd(json, start);
  if (first !== "{" && first !== "[") {
    const behind = json.slice(start).search(/[,}\]\s]/);
    return behind < 0 ? json.length : start + behind;
  }
  const marks = /["{}[\]]/g;
  marks.lastIndex = start;
  let depth = 0;
  for (let mark = marks.exec(json); mark; mark = marks.exec(json)) {
    if (mark[0] === '"') marks.lastIndex = stringEnd(json, mark.index);
    else if (mark[0] === "{" || mark[0] === "[") depth++;
    else if (--depth === 0) return marks.lastIndex;
  }
  return json.length;
}
function stringEnd(json, start) {
  let at = json.indexOf('"', start + 1);
  while (at >= 0 && isEscaped(json, at)) at = json.indexOf('"', at + 1);
  return at < 0 ? json.length : at + 1;
}
function isEscaped(json, at) {
  let first = at;
  while (json.charCodeAt(first - 1) === BACKSLASH2) first--;
  return (at - first) % 2 === 1;
}

// sdk/typescript/json_text.ts
var PATH_CHARS_MAX = 80;
var SEARCHED_PARTS_MAX = 1e5;
var HINTS = {
  Map: "send Object.fromEntries(map)",
  Set: "send an array: [...set]",
  BigInt: "send a number or a string",
  Promise: "await it",
  Generator: "send an array: [...values]",
  Error: "send its message"
};
function toJson(what, value, depthMax = JSON_DEPTH_MAX) {
  if (value === void 0) return void 0;
  if (value instanceof JsonText) return value.text;
  let text;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    const fault3 = new FaultSearch(SEARCHED_PARTS_MAX).find(value, depthMax);
    if (fault3) throw unwritable(what, fault3, depthMax);
    throw failed(what, thrownText(cause).split("\n")[0], cause);
  }
  if (isPlain2(value, depthMax)) return text;
  const fault2 = new FaultSearch(Infinity).find(value, depthMax);
  if (fault2) throw unwritable(what, fault2, depthMax);
  if (isTooDeep(text, depthMax)) throw unwritable(what, TOO_DEEP, depthMax);
  return text;
}
function isPlain2(value, levels) {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (Array.isArray(value)) {
    if (levels === 0) return false;
    for (let i = 0; i < value.length; i++) if (!isPlain2(value[i], levels - 1)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return prototype === Date.prototype && Number.isFinite(value.getTime());
  }
  if (levels === 0) return false;
  for (const key in value) {
    if (!isPlain2(value[key], levels - 1)) return false;
  }
  return true;
}
var TOO_DEEP = {
  path: "",
  what: void 0
};
var FaultSearch = class {
  #ancestors = /* @__PURE__ */ new Set();
  #partsLeft;
  constructor(partsMax) {
    this.#partsLeft = partsMax;
  }
  find(value, levels) {
    switch (typeof value) {
      case "number":
        return Number.isFinite(value) ? void 0 : {
          path: "",
          what: `${value}`
        };
      case "bigint":
        return writesItself(Object(value)) ? void 0 : fault("BigInt");
      case "function":
      case "symbol":
        return {
          path: "",
          what: `a ${typeof value}`
        };
      case "object":
        return value === null ? void 0 : this.#findIn(value, levels);
      default:
        return void 0;
    }
  }
  #findIn(value, levels) {
    if (this.#ancestors.has(value)) return {
      path: "",
      what: "an object that contains itself"
    };
    const own = Array.isArray(value) ? void 0 : faultOf(value);
    if (own) return own;
    if (!Array.isArray(value) && writesItself(value)) return void 0;
    if (levels === 0) return TOO_DEEP;
    this.#ancestors.add(value);
    for (const [key, part] of Object.entries(value)) {
      if (typeof part === "string" || this.#partsLeft-- <= 0) continue;
      const found = this.find(part, levels - 1);
      if (!found) continue;
      const step = Array.isArray(value) ? `[${key}]` : `.${key}`;
      return {
        ...found,
        path: cut(step + found.path)
      };
    }
    this.#ancestors.delete(value);
    return void 0;
  }
};
function faultOf(value) {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return void 0;
  if (value instanceof Date) {
    return Number.isFinite(value.getTime()) ? void 0 : {
      path: "",
      what: "an invalid Date"
    };
  }
  const name = nameOf(value);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return {
      path: "",
      what: withArticle(name),
      hint: "send a string, such as base64"
    };
  }
  if (writesItself(value) || isBoxed(value)) return void 0;
  if (value instanceof Error) return fault("Error", name);
  const { then } = value;
  if (typeof then === "function") return fault("Promise", name);
  if (Symbol.iterator in value || Symbol.asyncIterator in value) {
    return fault(Object.hasOwn(HINTS, name) ? name : "Generator", name);
  }
  return Object.keys(value).length === 0 ? fault(name) : void 0;
}
function writesItself(value) {
  return typeof value.toJSON === "function";
}
function isBoxed(value) {
  return value instanceof Number || value instanceof String || value instanceof Boolean;
}
function nameOf(value) {
  const { constructor } = value;
  const name = typeof constructor?.name === "string" ? constructor.name : "";
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  return name === "" || name === "GeneratorFunction" || tag.endsWith("Generator") ? tag : name;
}
function fault(kind, name = kind) {
  return {
    path: "",
    what: withArticle(name),
    hint: HINTS[kind]
  };
}
function withArticle(name) {
  return `${/^[aeiou]/i.test(name) ? "an" : "a"} ${name.slice(0, PATH_CHARS_MAX)}`;
}
function cut(path) {
  return path.length > 4 * PATH_CHARS_MAX ? path.slice(0, 4 * PATH_CHARS_MAX) : path;
}
function unwritable(what, { path, what: kind, hint }, depthMax) {
  const at = short(path);
  if (kind !== void 0) {
    const advice = hint === void 0 ? "" : `; ${hint}`;
    return failed(what, `value${at} is ${kind}${advice}`, void 0, path);
  }
  const message = `${what} is nested more deeply than ${depthMax} levels, at ${at || "its start"}`;
  return new EngineError("serialization_error", message, {
    details: {
      path
    }
  });
}
function failed(what, reason, cause, path) {
  const message = `${what} cannot be written as JSON: ${reason}`;
  const details = path === void 0 ? {} : {
    details: {
      path
    }
  };
  return new EngineError("serialization_error", message, {
    cause,
    ...details
  });
}
function short(path) {
  return path.length > PATH_CHARS_MAX ? `${path.slice(0, PATH_CHARS_MAX)}\u2026` : path;
}

// sdk/typescript/call_frames.ts
function writeParts(request) {
  const { function_id, namespace, action, payload, metadata } = request;
  let target = field("namespace", "The namespace", namespace);
  if (action) target += field("action", "The action", action);
  const more = field("metadata", `The metadata for ${function_id}`, metadata);
  const data = field("data", `The payload for ${function_id}`, payload);
  return {
    function_id: JSON.stringify(function_id),
    target,
    tail: `${more}${data}}`
  };
}
function writeCall(parts, details) {
  const { invocation_id, timeout_ms, traceparent, baggage } = details;
  let head = '{"type":"invokefunction",';
  if (invocation_id !== void 0) head += `"invocation_id":"${invocation_id}",`;
  head += `"function_id":${parts.function_id}${parts.target}`;
  if (timeout_ms !== void 0) head += `,"timeout_ms":${timeout_ms}`;
  if (traceparent !== void 0) head += field("traceparent", "The traceparent", traceparent);
  if (baggage !== void 0) head += field("baggage", "The baggage", baggage);
  return head + parts.tail;
}
function field(name, what, value) {
  const text = toJson(what, value);
  return text === void 0 ? "" : `,"${name}":${text}`;
}
function writeResult(call, result) {
  const { invocation_id = "", function_id, traceparent, baggage } = call;
  let frame = `{"type":"invocationresult","invocation_id":${JSON.stringify(invocation_id)},"function_id":${JSON.stringify(function_id)}`;
  if (traceparent !== void 0) frame += `,"traceparent":${JSON.stringify(traceparent)}`;
  if (baggage !== void 0) frame += `,"baggage":${JSON.stringify(baggage)}`;
  return result === void 0 ? `${frame}}` : `${frame},"result":${result}}`;
}
var TRACEPARENT2 = ',"traceparent":"';
var RESULT = ',"result":';
var TRACE_TEXT = /[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"/y;
function readResult(frame, at) {
  if (frame.charCodeAt(frame.length - 1) !== 125) return void 0;
  if (frame.startsWith(TRACEPARENT2, at)) {
    TRACE_TEXT.lastIndex = at + TRACEPARENT2.length;
    if (!TRACE_TEXT.test(frame)) return void 0;
    at = TRACE_TEXT.lastIndex;
  }
  if (at === frame.length - 1) return {
    value: void 0
  };
  if (!frame.startsWith(RESULT, at)) return void 0;
  try {
    const value = JSON.parse(frame.slice(at + RESULT.length, -1));
    return {
      value: value ?? void 0
    };
  } catch {
    return void 0;
  }
}
var COUNT_CHARS = 12;
var CallIds = class {
  /** The start of all ids of this worker. */
  start = newId().slice(0, -COUNT_CHARS);
  /** The id of a call; `count` starts at 1. */
  text(count) {
    return this.start + count.toString(16).padStart(COUNT_CHARS, "0");
  }
  /** The counter in an id; `undefined` for an id of another worker. */
  count(id) {
    if (id.length !== this.start.length + COUNT_CHARS || !id.startsWith(this.start)) {
      return void 0;
    }
    return countAt(id, this.start.length);
  }
};
function countAt(text, at) {
  let count = 0;
  for (let i = at; i < at + COUNT_CHARS; i++) {
    const code = text.charCodeAt(i);
    const isDigit = code >= 48 && code <= 57;
    if (!isDigit && !(code >= 97 && code <= 102)) return void 0;
    count = count * 16 + code - (isDigit ? 48 : 87);
  }
  return count;
}
function countEnd(at) {
  return at + COUNT_CHARS;
}

// sdk/typescript/turnover_map.ts
var BUCKETS_MIN = 16;
var TurnoverMap = class {
  #buckets = emptyBuckets(BUCKETS_MIN);
  #size = 0;
  #seq = 0;
  #seed = crypto.getRandomValues(new Int32Array(1))[0];
  get size() {
    return this.#size;
  }
  /** The value of a key; `undefined` if it is missing. */
  get(key) {
    return this.#find(key, hashOf(key, this.#seed))?.value;
  }
  /** Sets the value of a key. */
  set(key, value) {
    const hash = hashOf(key, this.#seed);
    const known = this.#find(key, hash);
    if (known) {
      known.value = value;
      return;
    }
    if (this.#size === this.#buckets.length) this.#grow();
    const at = hash & this.#buckets.length - 1;
    this.#buckets[at] = {
      key,
      hash,
      seq: this.#seq++,
      value,
      next: this.#buckets[at]
    };
    this.#size++;
  }
  /** Removes a key and returns its value; `undefined` if it is missing. */
  take(key) {
    const at = hashOf(key, this.#seed) & this.#buckets.length - 1;
    let before;
    for (let entry = this.#buckets[at]; entry; before = entry, entry = entry.next) {
      if (entry.key !== key) continue;
      if (before) before.next = entry.next;
      else this.#buckets[at] = entry.next;
      entry.next = void 0;
      this.#size--;
      return entry.value;
    }
    return void 0;
  }
  /** All values, in the order in which their keys were added. */
  values() {
    return this.#entries().sort((a, b) => a.seq - b.seq).map(({ value }) => value);
  }
  /** Removes all entries. */
  clear() {
    this.#buckets = emptyBuckets(BUCKETS_MIN);
    this.#size = 0;
  }
  #find(key, hash) {
    let entry = this.#buckets[hash & this.#buckets.length - 1];
    while (entry && entry.key !== key) entry = entry.next;
    return entry;
  }
  #entries() {
    const entries = [];
    for (const first of this.#buckets) {
      for (let entry = first; entry; entry = entry.next) entries.push(entry);
    }
    return entries;
  }
  #grow() {
    const before = this.#buckets;
    this.#buckets = emptyBuckets(before.length * 2);
    for (let i = 0; i < before.length; i++) {
      let entry = before[i];
      before[i] = void 0;
      while (entry) {
        const { next } = entry;
        const at = entry.hash & this.#buckets.length - 1;
        entry.next = this.#buckets[at];
        this.#buckets[at] = entry;
        entry = next;
      }
    }
  }
};
function emptyBuckets(count) {
  return new Array(count).fill(void 0);
}
function hashOf(key, seed) {
  if (typeof key === "number") return key | 0;
  let hash = seed;
  for (let i = 0; i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 16777619);
    hash ^= hash >>> 15;
  }
  return hash;
}

// sdk/typescript/pending_calls.ts
var TIMEOUT_GRACE_MS = 1e3;
var SWEEP_GAP_MS = 5;
var PendingCalls = class {
  /** Whether the engine ends calls at their deadline; then its error is waited for. */
  engineEndsCalls = false;
  #calls = new TurnoverMap();
  #clock;
  #expired;
  #sweepAt = Infinity;
  #cancelSweep;
  /** `expired` is called after a call has failed at its deadline. */
  constructor(clock, expired) {
    this.#clock = clock;
    this.#expired = expired;
  }
  get size() {
    return this.#calls.size;
  }
  add(call) {
    this.#calls.set(call.count, call);
    this.#sweepBy(call.deadline);
  }
  /** The call with this counter, if it is pending. */
  get(count) {
    return this.#calls.get(count);
  }
  /** Resolves a call; ignored if it is not pending. */
  resolve(count, value) {
    this.#take(count)?.resolve(value);
  }
  /** Rejects a call; ignored if it is not pending. */
  fail(count, error) {
    const call = this.#take(count);
    call?.reject(new InvocationError(error, call.function_id, call.invocation_id));
  }
  /** Rejects all calls, or only those whose frame has been sent. */
  failAll(error, which) {
    for (const call of this.#calls.values()) {
      if (which === "all" || call.sent) this.fail(call.count, error);
    }
  }
  /** Cancels the timer; to be called when no call is pending and none will be added. */
  stop() {
    this.#cancelSweep?.();
    this.#cancelSweep = void 0;
    this.#sweepAt = Infinity;
  }
  #take(count) {
    const call = this.#calls.take(count);
    if (call?.aborted) call.signal?.removeEventListener("abort", call.aborted);
    return call;
  }
  #sweepBy(time) {
    if (time >= this.#sweepAt) return;
    this.#cancelSweep?.();
    const ms = Math.max(SWEEP_GAP_MS, time - this.#clock.now());
    this.#sweepAt = this.#clock.now() + ms;
    this.#cancelSweep = this.#clock.after(ms, () => this.#sweep());
  }
  #sweep() {
    this.#sweepAt = Infinity;
    this.#cancelSweep = void 0;
    const now = this.#clock.now();
    let next = Infinity;
    for (const call of this.#calls.values()) {
      const end3 = this.#endOf(call);
      if (end3 <= now) this.#expire(call);
      else next = Math.min(next, end3);
    }
    if (next < Infinity) this.#sweepBy(next);
  }
  #endOf(call) {
    return call.sent && this.engineEndsCalls ? call.deadline + TIMEOUT_GRACE_MS : call.deadline;
  }
  #expire(call) {
    this.fail(call.count, timeoutError(call.timeoutMs));
    this.#expired(call);
  }
};
function timeoutError(timeoutMs) {
  return errorBody("TIMEOUT", `invocation timed out after ${timeoutMs}ms`);
}

// sdk/typescript/calls.ts
var FUNCTION_ID = '","function_id":';
var ENVELOPE_BYTES = 200;
var OFFLINE_QUEUE_BYTES_MAX = 64 * 1024 * 1024;
var OFFLINE_QUEUE_CALLS_MAX = 1e4;
var OutboundCalls = class {
  #setup;
  #pending;
  #queue = new OfflineQueue(OFFLINE_QUEUE_BYTES_MAX, OFFLINE_QUEUE_CALLS_MAX);
  #ids = new CallIds();
  /** The start of the frames of results, as the engine writes them. */
  #resultStart = `{"type":"invocationresult","invocation_id":"${this.#ids.start}`;
  #calls = 0;
  #engineCancels = false;
  #ended;
  constructor(setup) {
    this.#setup = setup;
    this.#pending = new PendingCalls(setup.clock, (call) => this.#withdraw(call, "timeout"));
  }
  /** Number of calls without a result. */
  get size() {
    return this.#pending.size;
  }
  /** Makes a call; `Worker.trigger()` documents the outcomes. */
  call(request) {
    return new Promise((resolve, reject) => this.#start(request, resolve, reject));
  }
  /** Sets the capabilities of the engine, which it sends on each connection. */
  useCapabilities(capabilities) {
    this.#engineCancels = capabilities.includes("cancel");
    this.#pending.engineEndsCalls = capabilities.includes("timeout");
  }
  /** Settles the call of a result; ignored if it is not pending. */
  settle({ invocation_id, result, error }) {
    const count = this.#ids.count(invocation_id);
    if (count === void 0) return;
    if (error) this.#pending.fail(count, error);
    else this.#pending.resolve(count, result);
  }
  /**
   * Settles a call if the frame is its result in the usual form; otherwise returns `false`, and the
   * frame has to be decoded.
   */
  settleFrame(frame) {
    if (!frame.startsWith(this.#resultStart)) return false;
    const at = this.#resultStart.length;
    const count = countAt(frame, at);
    const call = count === void 0 ? void 0 : this.#pending.get(count);
    if (!call) return false;
    const named = countEnd(at);
    const id = named + FUNCTION_ID.length;
    const isNamed = frame.startsWith(FUNCTION_ID, named) && frame.startsWith(call.quotedFunctionId, id);
    if (!isNamed) return false;
    const result = readResult(frame, id + call.quotedFunctionId.length);
    if (!result) return false;
    this.#pending.resolve(call.count, result.value);
    return true;
  }
  /** Fails the call whose result is invalid. */
  fail(invocation_id, error) {
    const count = this.#ids.count(invocation_id);
    if (count !== void 0) this.#pending.fail(count, error);
  }
  /** Passes the progress of a call to its `onProgress`. */
  progress({ invocation_id, data }) {
    const call = this.#pending.get(this.#ids.count(invocation_id) ?? 0);
    try {
      call?.onProgress?.(data);
    } catch (cause) {
      const message = `onProgress of a call to ${call?.function_id} failed: ${thrownText(cause)}`;
      this.#setup.report(new EngineError("invocation_failed", message, {
        cause
      }));
    }
  }
  /** Sends the queued calls on a new connection. */
  sendQueued(connection) {
    for (const frame of this.#queue.takeAll()) connection.send(frame.write());
  }
  /** Fails the calls that were sent on a connection that is lost, with the reason. */
  connectionLost(reason) {
    this.useCapabilities([]);
    const error = errorBody("invocation_stopped", "Invocation stopped", {
      reason
    });
    this.#pending.failAll(error, "sent");
  }
  /** Fails the calls that were queued while the worker connected for the first time. */
  failQueued() {
    this.#queue.takeAll();
    this.#pending.failAll(unreachable(), "all");
  }
  /** Fails all calls, and those made later, with `error`: the worker has ended. */
  end(error) {
    this.#ended ??= error;
    this.#queue.takeAll();
    this.#pending.failAll(error, "all");
    this.#pending.stop();
  }
  #start(request, resolve, reject) {
    const own = request.timeout_ms ?? request.timeoutMs ?? this.#setup.timeoutMs;
    checkRequest(request, own);
    const { function_id, onProgress, signal } = request;
    const parts = writeParts(request);
    const scope = this.#setup.scopes.current();
    if (this.#ended) throw new InvocationError(this.#ended, function_id);
    if (request.action?.type === "void") {
      this.#send({
        request,
        parts,
        scope
      });
      resolve(void 0);
      return;
    }
    const now = this.#setup.clock.now();
    const timeoutMs = shorten(own, scope, now, function_id);
    if (signal?.aborted) throw new InvocationError(cancelled(), function_id);
    const count = ++this.#calls;
    const aborted = signal && (() => this.#aborted(count, signal));
    const call = {
      count,
      invocation_id: this.#ids.text(count),
      function_id,
      quotedFunctionId: parts.function_id,
      timeoutMs,
      deadline: now + timeoutMs,
      sent: false,
      resolve,
      reject,
      onProgress,
      signal,
      aborted
    };
    this.#send({
      request,
      parts,
      scope
    }, call);
    this.#pending.add(call);
    if (aborted) signal.addEventListener("abort", aborted, {
      once: true
    });
  }
  /** Sends a frame, or queues it until there is a connection. */
  #send(frame, call) {
    const { function_id } = frame.request;
    const text = write(frame, call, call?.timeoutMs);
    checkSize(`The call of ${function_id}`, text);
    const connection = this.#setup.connection();
    if (connection?.isFull) {
      const message2 = `The engine does not read; ${connection.queuedBytes} bytes wait already`;
      throw new InvocationError(errorBody("overloaded", message2), function_id);
    }
    if (connection) {
      if (call) call.sent = true;
      connection.send(text);
      return;
    }
    if (this.#setup.failsNow()) throw new InvocationError(unreachable(), function_id);
    const writeLater = () => {
      if (!call) return write(frame, void 0, void 0);
      call.sent = true;
      const left = Math.floor(call.deadline - this.#setup.clock.now());
      return write(frame, call, Math.max(1, left));
    };
    const bytes = ENVELOPE_BYTES + frame.parts.tail.length;
    if (this.#queue.add({
      invocation_id: call?.invocation_id,
      bytes,
      write: writeLater
    })) return;
    const { size, bytes: queued } = this.#queue;
    const message = `The engine cannot be reached; ${size} calls of ${queued} bytes wait already`;
    throw new InvocationError(errorBody("overloaded", message), function_id);
  }
  /** Cancels a call whose signal was aborted. */
  #aborted(count, { reason }) {
    const call = this.#pending.get(count);
    if (!call) return;
    this.#pending.fail(count, cancelled());
    this.#withdraw(call, thrownText(reason));
  }
  /** Removes a call that has ended from the queue, or cancels it at the engine. */
  #withdraw({ invocation_id, sent }, reason) {
    if (!sent) this.#queue.remove(invocation_id);
    else if (this.#engineCancels) {
      const frame = encodeMessage({
        type: "cancelinvocation",
        invocation_id,
        reason
      });
      this.#setup.connection()?.send(frame);
    }
  }
};
function write({ request, parts, scope }, call, timeout_ms) {
  const { traceparent = scope?.traceparent, baggage = scope?.baggage } = request;
  const invocation_id = call?.invocation_id;
  return writeCall(parts, {
    invocation_id,
    timeout_ms,
    traceparent,
    baggage
  });
}
function shorten(own, scope, now, function_id) {
  if (scope?.deadline === void 0) return own;
  const left = Math.floor(scope.deadline - now);
  if (left < 1) throw new InvocationError(timeoutError(0), function_id);
  return Math.min(own, left);
}
function checkRequest(request, timeoutMs) {
  checkId("function_id", request.function_id, "math::add");
  checkNamespace(request.namespace);
  checkTimeout("timeout_ms", timeoutMs);
  if (request.onProgress) checkCallable("onProgress", request.onProgress);
  if (request.action?.type === "enqueue") checkEnqueue(request.action);
}
function unreachable() {
  return errorBody("engine_unreachable", "There is no connection to the engine; try again later");
}
function cancelled() {
  return errorBody("cancelled", "Invocation cancelled");
}
var OfflineQueue = class {
  #frames = /* @__PURE__ */ new Map();
  #bytesMax;
  #framesMax;
  #bytes = 0;
  constructor(bytesMax, framesMax) {
    this.#bytesMax = bytesMax;
    this.#framesMax = framesMax;
  }
  /** Number of frames. */
  get size() {
    return this.#frames.size;
  }
  /** Total size of the frames. */
  get bytes() {
    return this.#bytes;
  }
  /** Adds a frame; `false` if a limit is reached. */
  add(frame) {
    if (this.#frames.size >= this.#framesMax) return false;
    if (this.#bytes + frame.bytes > this.#bytesMax) return false;
    this.#frames.set(frame.invocation_id ?? Symbol(), frame);
    this.#bytes += frame.bytes;
    return true;
  }
  /** Removes the frame of a call. */
  remove(invocation_id) {
    const frame = this.#frames.get(invocation_id);
    if (!frame) return;
    this.#frames.delete(invocation_id);
    this.#bytes -= frame.bytes;
  }
  /** Removes all frames and returns them in order. */
  takeAll() {
    const frames = [
      ...this.#frames.values()
    ];
    this.#frames.clear();
    this.#bytes = 0;
    return frames;
  }
};

// sdk/typescript/connection.ts
var RECONNECT_FIRST_MS = 1e3;
var RECONNECT_MAX_MS = 1800;
var REFUSED_MAX_MS = 3e4;
var RECONNECT_JITTER = 0.3;
var DIALS_MAX = 2;
var UNSENT_BYTES_MAX2 = 64 * 1024 * 1024;
var UNSENT_BYTES_END = 3 * UNSENT_BYTES_MAX2;
var CHECK_CHARS = 1024 * 1024;
var FULL_CHECK_MS = 100;
var STALLED_MS = 3e4;
var ReconnectingConnection = class {
  #setup;
  #events;
  #ended;
  #resolveEnded = () => {
  };
  #state = "connecting";
  /** The attempt that has opened. */
  #attempt;
  /** The attempts in progress, oldest first. */
  #dialing = [];
  /** All attempts whose transport has not closed. */
  #unclosed = /* @__PURE__ */ new Set();
  #cancelRetry;
  #failures = 0;
  /** Connections in a row that were refused after they had opened. */
  #refusals = 0;
  constructor(setup, events) {
    this.#setup = setup;
    this.#events = events;
    this.#ended = new Promise((resolve) => this.#resolveEnded = resolve);
  }
  get state() {
    return this.#state;
  }
  /** The open connection, if there is one. */
  get current() {
    return this.#attempt?.isOpen ? this.#attempt : void 0;
  }
  /** Whether it will never be open again. */
  get isFinal() {
    return this.#state === "failed" || this.#state === "disconnected";
  }
  /** Connects for the first time. */
  start() {
    this.#dial();
  }
  /** Closes the connection for good; resolves when all transports have closed. */
  stop(state) {
    if (!this.isFinal) this.#moveTo(state);
    this.#stopTimer();
    if (this.#attempt) end(this.#attempt);
    for (const attempt2 of [
      ...this.#unclosed
    ]) attempt2.transport?.close(1e3, "");
    this.#resolveIfEnded();
    return this.#ended;
  }
  #dial() {
    this.#stopTimer();
    const { url, dial, dialOptions } = this.#setup;
    const attempt2 = {
      isOpen: false,
      isFull: false,
      uncheckedChars: 0,
      late: [],
      isWatched: false,
      unsentBytes: 0,
      stuckSince: 0,
      isOver: false,
      transport: void 0,
      get queuedBytes() {
        return attempt2.transport?.queuedBytes;
      },
      send: (message) => {
        if (!attempt2.isOpen) return;
        attempt2.transport?.send(message);
        attempt2.uncheckedChars += message.length;
        if (attempt2.isFull || attempt2.uncheckedChars >= CHECK_CHARS) this.#checkUnsent(attempt2);
      },
      sendLate: (message) => {
        if (attempt2.isOpen && (attempt2.isFull || attempt2.late.length > 0)) {
          attempt2.late.push(message);
        } else if (attempt2.isOpen) message.send();
        else message.fail();
      },
      judged: (isAdmitted) => this.#refusals = isAdmitted ? 0 : this.#refusals + 1
    };
    this.#dialing.push(attempt2);
    this.#unclosed.add(attempt2);
    let openedEarly = false;
    const events = {
      // A transport without a socket may open before dial() has returned it.
      opened: () => attempt2.transport ? this.#opened(attempt2) : openedEarly = true,
      text: (message) => this.#text(message, attempt2),
      binary: (bytes) => this.#text(new TextDecoder().decode(bytes), attempt2),
      closed: (code, reason) => this.#closed(attempt2, reason || `code ${code}`)
    };
    attempt2.transport = dial(url, events, dialOptions);
    if (openedEarly) this.#opened(attempt2);
    if (this.#dialing.includes(attempt2)) this.#dialAfter(this.#delay());
  }
  /** Dials after a delay, unless a connection opens before. */
  #dialAfter(delayMs) {
    this.#cancelRetry = this.#setup.clock.after(delayMs, () => this.#dialAgain());
  }
  /** Dials beside the oldest attempt that is not answered. */
  #dialAgain() {
    this.#cancelRetry = void 0;
    if (this.#failures + this.#dialing.length >= this.#attemptsMax) return;
    this.#moveTo("reconnecting");
    if (this.#dialing.length === DIALS_MAX) {
      this.#failures++;
      abandon(this.#dialing.pop());
    }
    this.#dial();
  }
  #opened(attempt2) {
    if (attempt2.isOver || this.isFinal) return;
    this.#stopTimer();
    const others = this.#dialing.filter((other) => other !== attempt2);
    this.#dialing = [];
    this.#attempt = attempt2;
    attempt2.isOpen = true;
    this.#failures = 0;
    for (const other of others) abandon(other);
    this.#events.opened(attempt2);
    if (attempt2.isOpen) this.#moveTo("connected");
  }
  #checkUnsent(attempt2) {
    attempt2.uncheckedChars = 0;
    const bytes = attempt2.queuedBytes ?? 0;
    attempt2.isFull = bytes > UNSENT_BYTES_MAX2;
    if (bytes > UNSENT_BYTES_END) attempt2.transport?.close(1008, "the engine does not read");
    if (!attempt2.isFull || attempt2.isWatched) return;
    attempt2.isWatched = true;
    attempt2.unsentBytes = bytes;
    attempt2.stuckSince = this.#setup.clock.now();
    this.#watchFull(attempt2);
  }
  #watchFull(attempt2) {
    this.#setup.clock.after(FULL_CHECK_MS, () => {
      if (!attempt2.isOpen) return;
      const bytes = attempt2.queuedBytes ?? 0;
      const now = this.#setup.clock.now();
      if (bytes < attempt2.unsentBytes) attempt2.stuckSince = now;
      attempt2.unsentBytes = bytes;
      attempt2.isFull = bytes > UNSENT_BYTES_MAX2;
      if (now - attempt2.stuckSince >= STALLED_MS) failLate(attempt2);
      while (!attempt2.isFull && attempt2.late.length > 0) attempt2.late.shift().send();
      attempt2.isWatched = attempt2.isFull;
      if (attempt2.isWatched) this.#watchFull(attempt2);
    });
  }
  #text(message, attempt2) {
    if (attempt2.isOpen && message !== "") this.#events.text(message, attempt2);
  }
  #closed(attempt2, reason) {
    this.#unclosed.delete(attempt2);
    if (this.isFinal) return this.#resolveIfEnded();
    if (attempt2.isOver) return;
    attempt2.isOver = true;
    const wasOpen = attempt2.isOpen;
    end(attempt2);
    this.#dialing = this.#dialing.filter((other) => other !== attempt2);
    if (attempt2 === this.#attempt) this.#attempt = void 0;
    if (wasOpen) this.#events.lost(reason);
    else {
      this.#failures++;
      this.#refusals = 0;
    }
    if (this.isFinal) return;
    if (this.#dialing.length > 0) this.#events.failed(reason, 0);
    else this.#retry(reason);
  }
  #retry(reason) {
    this.#stopTimer();
    if (Math.max(this.#failures, this.#refusals) >= this.#attemptsMax) {
      this.#events.failed(reason, void 0);
      void this.stop("failed");
      return;
    }
    const delayMs = this.#delayAfterLoss();
    this.#moveTo("reconnecting");
    this.#events.failed(reason, delayMs);
    if (!this.isFinal) this.#dialAfter(delayMs);
  }
  get #attemptsMax() {
    return this.#setup.reconnect.maxAttempts ?? Infinity;
  }
  /** The delay before the next dial: twice as long with each that failed or is not answered. */
  #delay() {
    const { maxMs = RECONNECT_MAX_MS } = this.#setup.reconnect;
    return this.#doubled(this.#failures + this.#dialing.length, maxMs);
  }
  #delayAfterLoss() {
    if (this.#refusals === 0) return this.#delay();
    return this.#doubled(this.#refusals, Math.max(REFUSED_MAX_MS, this.#setup.reconnect.maxMs ?? 0));
  }
  #doubled(attempts, maxMs) {
    const { firstMs = RECONNECT_FIRST_MS } = this.#setup.reconnect;
    const wantedMs = firstMs * 2 ** Math.max(0, attempts - 1);
    const meanMs = Math.min(maxMs / (1 + RECONNECT_JITTER), wantedMs);
    return meanMs * (1 + RECONNECT_JITTER * (2 * this.#setup.random() - 1));
  }
  #stopTimer() {
    this.#cancelRetry?.();
    this.#cancelRetry = void 0;
  }
  #resolveIfEnded() {
    if (this.#unclosed.size === 0) this.#resolveEnded();
  }
  #moveTo(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.#events.state(state);
  }
};
function end(attempt2) {
  attempt2.isOpen = false;
  failLate(attempt2);
}
function failLate(attempt2) {
  for (const message of attempt2.late.splice(0)) message.fail();
}
function abandon(attempt2) {
  attempt2.isOver = true;
  attempt2.transport?.close(1e3, "");
}
var ConnectionListeners = class {
  #listeners = /* @__PURE__ */ new Set();
  #report;
  /** `report` receives the errors that listeners throw. */
  constructor(report) {
    this.#report = report;
  }
  /**
   * Adds a listener; the returned function removes it. The same function may be added twice.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` if it is not a function.
   */
  add(listener) {
    checkCallable("The listener", listener);
    const own = (state) => listener(state);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }
  /** Calls all listeners; an error of one does not affect the others. */
  notify(state) {
    for (const listener of [
      ...this.#listeners
    ]) {
      try {
        listener(state);
      } catch (cause) {
        const message = `A listener for the connection state failed: ${thrownText(cause)}`;
        this.#report(new EngineError("invocation_failed", message, {
          cause
        }));
      }
    }
  }
};

// sdk/typescript/wire/protocol.ts
var BATCH_PROTOCOL = "engine.batch.v1";
var DEFAULT_NAMESPACE = "default";
var ANNOUNCE_FUNCTION_ID = "engine::workers::register";
var LAUNCH_ID_HEADER = "x-engine-launch-id";

// sdk/typescript/ws_transport.ts
var INBOUND_BYTES_MAX2 = 256 * 1024 * 1024;
var PROTOCOL_HEADER = "sec-websocket-protocol";
var TIMES = {
  openMs: OPEN_TIMEOUT_MS,
  pingMs: PING_INTERVAL_MS,
  silenceMs: SILENCE_MS,
  closeMs: 1e3
};
var wsDial = makeWsDial(TIMES);
function makeWsDial(times) {
  return (url, events, options) => new WsTransport(url, events, options, times);
}
var WsTransport = class {
  #events;
  #times;
  #batch = new Batch((frame) => this.#socket?.send(frame));
  #endOfTick = () => this.#flush();
  #socket;
  #stream;
  #isBatching = false;
  #isCorked = false;
  /** Whether a flush is scheduled for the end of the tick. */
  #isScheduled = false;
  #isOpen = false;
  #isOver = false;
  #isClosing = false;
  #problem = "";
  #silentMs = 0;
  #openTimer;
  #pingTimer;
  #closeTimer;
  constructor(url, events, options, times) {
    this.#events = events;
    this.#times = times;
    this.#connect(url, options).catch((error) => this.#end(1006, describe2(error)));
  }
  send(message) {
    if (!this.#isOpen) return;
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      atEndOfTick(this.#endOfTick);
    }
    if (this.#isBatching && typeof message === "string") {
      this.#batch.add(message);
      return;
    }
    this.#batch.flush();
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#stream?.cork();
    }
    this.#socket?.send(message);
  }
  get queuedBytes() {
    return (this.#socket?.bufferedAmount ?? 0) + this.#batch.chars;
  }
  close(code = 1e3, reason = "") {
    if (this.#isOver || this.#isClosing) return;
    this.#isClosing = true;
    this.#isOpen = false;
    if (!this.#socket) return;
    this.#flush();
    this.#closeTimer = setTimeout(() => this.#socket?.terminate(), this.#times.closeMs);
    this.#socket.close(code, reason);
  }
  async #connect(url, { headers = {}, batch = false }) {
    const module = await Promise.resolve().then(() => (init_wrapper(), wrapper_exports));
    if (this.#isClosing) return this.#end(1006, "closed before it was open");
    const WebSocket3 = module.default;
    const options = {
      headers,
      perMessageDeflate: false,
      maxPayload: INBOUND_BYTES_MAX2
    };
    const socket = new WebSocket3(url, batch ? [
      BATCH_PROTOCOL
    ] : [], options);
    this.#socket = socket;
    socket.on("upgrade", (response) => this.#upgraded(response, batch));
    this.#openTimer = setTimeout(() => {
      this.#problem = `no answer within ${this.#times.openMs} ms`;
      socket.terminate();
    }, this.#times.openMs);
    socket.on("open", () => this.#opened());
    socket.on("message", (data, isBinary) => this.#message(data, isBinary));
    socket.on("ping", () => this.#silentMs = 0);
    socket.on("pong", () => this.#silentMs = 0);
    socket.on("error", (error) => this.#failed(error));
    socket.on("close", (code, reason) => {
      this.#end(code, new TextDecoder().decode(reason) || this.#problem);
    });
  }
  #upgraded({ headers, socket }, isOffered) {
    this.#stream = socket;
    if (!isOffered) return;
    this.#isBatching = headers[PROTOCOL_HEADER] === BATCH_PROTOCOL;
    headers[PROTOCOL_HEADER] ??= BATCH_PROTOCOL;
  }
  #opened() {
    clearTimeout(this.#openTimer);
    if (this.#isClosing) return;
    this.#isOpen = true;
    this.#pingTimer = setInterval(() => this.#heartbeat(), this.#times.pingMs);
    this.#events.opened();
  }
  #message(data, isBinary) {
    this.#silentMs = 0;
    if (isBinary) return this.#events.binary(data);
    const text = data.toString();
    if (this.#isBatching) splitBatch(text, (message) => this.#events.text(message));
    else this.#events.text(text);
  }
  #flush() {
    this.#isScheduled = false;
    this.#batch.flush();
    if (this.#isCorked) this.#stream?.uncork();
    this.#isCorked = false;
  }
  /** Counts pings, not time: a process that was suspended must not close its connection. */
  #heartbeat() {
    this.#silentMs += this.#times.pingMs;
    if (this.#silentMs < this.#times.silenceMs) {
      this.#socket?.ping();
      return;
    }
    this.#problem = `nothing received for ${this.#times.silenceMs} ms`;
    this.#socket?.terminate();
  }
  /** A frame that breaks a rule: `ws` has sent a close frame, and waits 30 s for the peer's. */
  #failed(error) {
    this.#problem ||= describe2(error);
    this.#closeTimer ??= setTimeout(() => this.#socket?.terminate(), this.#times.closeMs);
  }
  #end(code, reason) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#isOpen = false;
    clearTimeout(this.#openTimer);
    clearTimeout(this.#closeTimer);
    clearInterval(this.#pingTimer);
    this.#events.closed(code, reason);
  }
};
function describe2(error) {
  const { message = String(error), errors } = error;
  const text = message || errors?.[0]?.message || "no connection";
  return text.replace(/^Unexpected server response: (\d+)$/, "HTTP $1");
}
var Batch = class {
  #write;
  #texts = [];
  #chars = 0;
  /** `write` receives each frame. */
  constructor(write2) {
    this.#write = write2;
  }
  /** Characters that were added and not written. */
  get chars() {
    return this.#chars;
  }
  /** Adds a message; if the frame would become too long, writes what was added before. */
  add(text) {
    const chars = text.length + 1;
    if (this.#chars + chars > BATCH_CHARS_MAX) this.flush();
    this.#texts.push(text);
    this.#chars += chars;
  }
  /** Writes the messages as one frame. */
  flush() {
    const texts = this.#texts;
    if (texts.length === 0) return;
    this.#texts = [];
    this.#chars = 0;
    this.#write(texts.length === 1 ? texts[0] : texts.join("\n"));
  }
};
function splitBatch(frame, take) {
  let start = 0;
  let end3 = frame.indexOf("\n");
  for (; end3 !== -1; end3 = frame.indexOf("\n", start)) {
    if (end3 > start) take(frame.slice(start, end3));
    start = end3 + 1;
  }
  if (start < frame.length) take(start === 0 ? frame : frame.slice(start));
}

// sdk/typescript/dial.ts
var dialPlatform = (url, events, options) => {
  const dial = processGlobal() ? wsDial : browserDial;
  return dial(url, events, options);
};
function headersOf(options) {
  const headers = {
    ...options.headers
  };
  if (options.token) headers["Authorization"] = `Bearer ${options.token}`;
  const launchId = environment("ENGINE_LAUNCH_ID");
  if (launchId) headers[LAUNCH_ID_HEADER] = launchId;
  return headers;
}
var browserDial = (url, events, { headers = {} }) => {
  const socket = new BrowserSocket(withToken(url, headers), events);
  return {
    send: (message) => socket.send(message),
    get queuedBytes() {
      return socket.queuedBytes;
    },
    close: (code = 1e3, reason = "") => socket.close(code, reason)
  };
};
function withToken(url, headers) {
  const name = Object.keys(headers).find((key) => key.toLowerCase() === "authorization");
  const token = /^Bearer (.+)$/.exec(name ? headers[name] ?? "" : "")?.[1];
  if (!token) return url;
  const address = new URL(url);
  address.searchParams.set("token", token);
  return address.href;
}
var TLS_HINTS = [
  [
    /wrong version number|InvalidContentType|EPROTO|packet length too long/i,
    "the engine there does not use TLS; dial ws:// instead of wss://"
  ],
  [
    /\b426\b|Expected HTTP\/|invalid HTTP version/i,
    "the engine there may use TLS; dial wss:// instead of ws://"
  ],
  [
    /altname|not valid for name|NotValidForName/i,
    "the certificate there is for another host name; dial a name that it lists"
  ],
  [
    /expired|NotValidYet|not yet valid/i,
    "the certificate there has expired, or is not valid yet"
  ],
  [
    /verify the first certificate|self[- ]signed|local issuer|UnknownIssuer|unknown ca\b/i,
    "the certificate there is not trusted here; name the PEM file of its CA in NODE_EXTRA_CA_CERTS (Node) or DENO_CERT (Deno)"
  ]
];
function withTlsHint(reason) {
  const hint = TLS_HINTS.find(([pattern]) => pattern.test(reason))?.[1];
  return hint === void 0 ? reason : `${reason}; ${hint}`;
}
function startHint(url, reason) {
  if (url.replace(/\/$/, "") !== ENGINE_URL_DEFAULT || !/refused/i.test(reason)) return "";
  return "; start the engine, or set ENGINE_URL to its address";
}

// sdk/typescript/channels/http_stream.ts
var EVENT_STREAM = "text/event-stream";
var EVENT_FIELDS = [
  "event",
  "data",
  "id",
  "retry"
];
var encoder3 = new TextEncoder();
function streamedResponse(payload, result) {
  if (typeof result !== "object" || result === null) return void 0;
  const writer = payload?.response;
  if (!(writer instanceof ChannelWriter)) return void 0;
  const whole = itemsOf(result);
  if (whole) return {
    writer,
    items: whole,
    status: void 0,
    headers: void 0
  };
  const { body, status_code, statusCode, headers } = result;
  const items = itemsOf(body);
  return items && {
    writer,
    items,
    status: status_code ?? statusCode,
    headers
  };
}
function itemsOf(value) {
  if (typeof value !== "object" || value === null) return void 0;
  const { next, getReader, [Symbol.asyncIterator]: iterate } = value;
  if (typeof iterate === "function") return iterate.call(value);
  if (typeof getReader === "function") return readerOf(value);
  return typeof next === "function" ? value : void 0;
}
function readerOf(stream) {
  const reader = stream.getReader();
  return {
    next: () => reader.read(),
    async return() {
      await reader.cancel();
      return {
        done: true,
        value: void 0
      };
    }
  };
}
async function sendStream(streamed, gone) {
  const { writer, items } = streamed;
  let isDone = false;
  const left = () => {
    gone();
    void end2(items);
  };
  writer.signal.addEventListener("abort", left, {
    once: true
  });
  try {
    const known = sendKnown(streamed);
    known.catch(() => {
    });
    let item = await items.next();
    const type = await known ?? await sendType(streamed, item.done ? void 0 : item.value);
    while (!item.done) {
      await writer.write(encodeItem(item.value, type));
      item = await items.next();
    }
    isDone = true;
    await writer.close();
  } catch (error) {
    writer.signal.removeEventListener("abort", left);
    await writer.abort(thrownText(error));
    if (!isDone) await end2(items);
  }
}
async function end2(items) {
  try {
    await items.return?.();
  } catch {
  }
}
async function sendKnown({ writer, status, headers }) {
  if (status !== void 0 && status !== null) {
    await writer.write(JSON.stringify({
      type: "set_status",
      status_code: status
    }));
  }
  const type = contentType(headers);
  if (type !== void 0) await writer.write(JSON.stringify({
    type: "set_headers",
    headers
  }));
  return type?.toLowerCase();
}
async function sendType({ writer, headers }, first) {
  const type = typeof first === "string" ? "text/plain; charset=utf-8" : "";
  const all = type === "" ? headers : withType(headers, type);
  if (all !== void 0 && all !== null) {
    await writer.write(JSON.stringify({
      type: "set_headers",
      headers: all
    }));
  }
  return type;
}
function contentType(headers) {
  if (typeof headers !== "object" || headers === null) return void 0;
  const pairs = Array.isArray(headers) ? headers.map((line) => {
    const [name = "", ...value] = String(line).split(":");
    return [
      name,
      value.join(":")
    ];
  }) : Object.entries(headers);
  const found = pairs.find(([name]) => name.trim().toLowerCase() === "content-type")?.[1];
  return found === void 0 ? void 0 : String(found).trim();
}
function withType(headers, type) {
  if (Array.isArray(headers)) return [
    ...headers,
    `content-type: ${type}`
  ];
  return {
    ...headers,
    "content-type": type
  };
}
function encodeItem(item, type) {
  if (typeof item === "string") return encoder3.encode(item);
  if (item instanceof Uint8Array) return item;
  if (item instanceof ArrayBuffer) return new Uint8Array(item);
  if (type.startsWith(EVENT_STREAM)) return encoder3.encode(eventOf(item));
  const message = `A response that is a stream carries strings and Uint8Array; objects need the content-type ${EVENT_STREAM}`;
  throw new EngineError("serialization_error", message);
}
function eventOf(item) {
  const isObject3 = typeof item === "object" && item !== null && !Array.isArray(item);
  const keys = isObject3 ? Object.keys(item) : [];
  const isEvent = keys.length > 0 && keys.every((key) => EVENT_FIELDS.includes(key));
  const fields = isEvent ? item : {
    data: item
  };
  let text = "";
  for (const name of EVENT_FIELDS) {
    const value = fields[name];
    if (value === void 0) continue;
    const line = typeof value === "string" ? value : JSON.stringify(value) ?? "null";
    for (const part of name === "data" ? line.split(/\r\n|\r|\n/) : [
      line.replace(/[\r\n]/g, " ")
    ]) {
      text += `${name}: ${part}
`;
    }
  }
  return `${text}
`;
}

// sdk/typescript/handlers.ts
var OF_TEXT = Symbol("TextHandler");
var OVERDUE_MAX = 20;
var Handlers = class {
  /** Whether the engine forwards progress. */
  engineForwardsProgress = false;
  #setup;
  #running = new TurnoverMap();
  constructor(setup) {
    this.#setup = setup;
  }
  /** Number of running handlers whose callers wait for a result. */
  get size() {
    return this.#running.size;
  }
  /** Gauges of the handlers that run past their deadline, by function (PROTOCOL 9). */
  load() {
    const now = this.#setup.clock.now();
    const overdue = /* @__PURE__ */ new Map();
    for (const { deadline, function_id } of this.#running.values()) {
      if (deadline === void 0 || deadline >= now) continue;
      const seconds = (now - deadline) / 1e3;
      overdue.set(function_id, Math.max(seconds, overdue.get(function_id) ?? 0));
    }
    const latest = [
      ...overdue
    ].sort(([, one], [, other]) => other - one).slice(0, OVERDUE_MAX);
    return [
      // No call waits for a thread; a report begins with this one.
      {
        name: "engine.handlers.waiting",
        unit: "1",
        value: 0
      },
      ...latest.map(([functionId, value]) => {
        return {
          name: "engine.handlers.overdue",
          unit: "s",
          value,
          functionId
        };
      })
    ];
  }
  /**
   * Runs the handler of a call and sends its result. Never rejects.
   *
   * @param frame The text of the message, for handlers that pass a part of it on.
   */
  run(message, connection, frame) {
    return this.#run(message, connection, this.#find(message, frame));
  }
  /** The handler of a call; only one that wants the frame keeps it. */
  #find({ namespace, function_id }, frame) {
    const handler = this.#setup.find(namespace, function_id);
    const own = handler?.[OF_TEXT];
    if (!own || frame === void 0) return handler;
    const textOf = (name) => memberText(memberText(frame, "data") ?? "", name);
    return (payload, _metadata, context) => own(payload, textOf, context);
  }
  async #run(message, connection, handler) {
    const { clock, scopes } = this.#setup;
    const now = clock.now();
    const call = new RunningCall(message, connection, this.engineForwardsProgress, now);
    if (message.invocation_id) this.#running.set(message.invocation_id, call);
    const ended = this.#setup.observe?.(message, now);
    let failure;
    try {
      if (!handler) throw new EngineError("function_not_found", "Function not found");
      const { traceparent, baggage } = message;
      let result = scopes.run({
        deadline: call.deadline,
        traceparent,
        baggage
      }, () => handler(message.data ?? null, message.metadata, call));
      if (isThenable(result)) result = await result;
      const streamed = streamedResponse(message.data, result);
      if (streamed) {
        void sendStream(streamed, () => call.abort("cancelled", "The client has left"));
        result = void 0;
      }
      const late = this.#answer(call, result);
      if (late) await late;
    } catch (thrown) {
      failure = describeThrown(thrown);
      this.#show(call, failure);
      this.#fail(call, failure, thrown);
    } finally {
      call.isOver = true;
      this.#forget(call);
      ended?.(call.abortError ?? failure);
    }
  }
  /** Aborts the handler of a cancelled call; ignored if it does not run. */
  cancel({ invocation_id, reason }) {
    this.#running.get(invocation_id)?.abort("cancelled", reason ?? "Invocation cancelled");
  }
  /** Aborts all handlers, because the connection is lost. */
  abortAll(reason) {
    for (const call of this.#running.values()) call.abort("invocation_stopped", reason);
    this.#running.clear();
  }
  /** Passes on the stack of an error without a code of its own, which no handler meant. */
  #show({ isAborted, message }, { code, stacktrace }) {
    const { failed: failed2, scopes } = this.#setup;
    if (!failed2 || isAborted || code !== "invocation_failed" || stacktrace === void 0) return;
    const { function_id, traceparent, baggage } = message;
    const scope = {
      deadline: void 0,
      traceparent,
      baggage
    };
    scopes.run(scope, () => failed2(function_id, stacktrace));
  }
  /** Removes a call, unless a later one has the same id. */
  #forget(call) {
    const id = call.invocation_id;
    if (id && this.#running.get(id) === call) this.#running.take(id);
  }
  #answer(call, result) {
    if (call.isAborted || call.invocation_id === void 0) return;
    if (call.connection.isFull) return this.#answerLate(call, result);
    const what = `The result of ${call.function_id}`;
    const frame = writeResult(call.message, resultText(what, result));
    checkSize(what, frame);
    call.connection.send(frame);
  }
  /** Waits until the engine has read what was sent before. */
  #answerLate(call, result) {
    return new Promise((resolve, reject) => {
      const fail = () => {
        const message = `The result of ${call.function_id} is dropped: the engine does not read`;
        reject(new EngineError("overloaded", message, {
          retryable: false
        }));
      };
      const send = () => {
        try {
          resolve(this.#answer(call, result));
        } catch (thrown) {
          reject(thrown);
        }
      };
      if (call.connection.sendLate) call.connection.sendLate({
        send,
        fail
      });
      else fail();
    });
  }
  #fail(call, error, thrown) {
    if (call.isAborted) return;
    if (call.invocation_id === void 0) {
      const message = `${call.function_id} failed: ${error.message}`;
      this.#setup.report(new EngineError(error.code, message, {
        cause: thrown
      }));
      return;
    }
    call.connection.send(encodeFailure(call.message, error));
  }
};
function resultText(what, result) {
  return toJson(what, result);
}
function isThenable(result) {
  return typeof result?.then === "function";
}
var MESSAGE_CHARS_MAX = 1e4;
function encodeFailure(message, error) {
  const head = resultHead(message);
  try {
    const frame = encodeMessage({
      ...head,
      error
    });
    checkSize("An error", frame);
    if (!isTooDeep(frame)) return frame;
  } catch {
  }
  const { details: _details, stacktrace: _stacktrace, ...rest } = error;
  const short2 = {
    ...rest,
    message: rest.message.slice(0, MESSAGE_CHARS_MAX)
  };
  return encodeMessage({
    ...head,
    error: short2
  });
}
function resultHead(message) {
  const { invocation_id = "", function_id, traceparent, baggage } = message;
  return {
    type: "invocationresult",
    invocation_id,
    function_id,
    ...traceparent !== void 0 && {
      traceparent
    },
    ...baggage !== void 0 && {
      baggage
    }
  };
}
var RunningCall = class {
  isOver = false;
  /** When its caller gives up, on the clock of the worker. */
  deadline;
  message;
  connection;
  #forwardsProgress;
  #abort;
  #abortReason;
  constructor(message, connection, forwardsProgress, now) {
    const { timeout_ms } = message;
    this.deadline = timeout_ms === void 0 ? void 0 : now + timeout_ms;
    this.message = message;
    this.connection = connection;
    this.#forwardsProgress = forwardsProgress;
  }
  get invocation_id() {
    return this.message.invocation_id;
  }
  get function_id() {
    return this.message.function_id;
  }
  get caller() {
    return this.message.caller;
  }
  get timeout_ms() {
    return this.message.timeout_ms;
  }
  get traceparent() {
    return this.message.traceparent;
  }
  get baggage() {
    return this.message.baggage;
  }
  get isAborted() {
    return this.#abortReason !== void 0;
  }
  get abortError() {
    return this.#abortReason?.toJSON();
  }
  /** Created on first use, since most handlers do not use it. */
  get signal() {
    this.#abort ??= new AbortController();
    if (this.#abortReason && !this.#abort.signal.aborted) this.#abort.abort(this.#abortReason);
    return this.#abort.signal;
  }
  abort(code, reason) {
    this.#abortReason = new EngineError(code, reason);
    this.#abort?.abort(this.#abortReason);
  }
  progress(data) {
    const { invocation_id, connection } = this;
    if (this.isOver || this.isAborted || !this.#forwardsProgress || !invocation_id) return;
    const what = `Progress of ${this.function_id}`;
    const text = toJson(what, data) ?? "null";
    const frame = `{"type":"invocationprogress","invocation_id":${JSON.stringify(invocation_id)},"data":${text}}`;
    checkSize(what, frame);
    if (!connection.isFull) connection.send(frame);
  }
};

// sdk/typescript/identity.ts
var SDK_VERSION = "0.1.0";
var SDK_CAPABILITIES = [
  "cancel",
  "timeout",
  "progress",
  "batch"
];
var ARCHITECTURES = {
  x86_64: "x64",
  aarch64: "arm64"
};
function describeWorker(options) {
  const runtime = findRuntime();
  const announcement = {
    runtime,
    version: SDK_VERSION,
    name: options.workerName || environment("ENGINE_WORKER_NAME") || defaultName(runtime),
    os: findOs(),
    pid: findPid(),
    isolation: environment("ENGINE_ISOLATION") ?? null,
    // Browsers do not offer the subprotocol: see browserDial.
    capabilities: SDK_CAPABILITIES.filter((name) => name !== "batch" || runtime !== "browser"),
    telemetry: {
      language: findLanguage(),
      project_name: null,
      framework: "engine-sdk-ts"
    }
  };
  if (options.description) announcement.description = options.description;
  if (options.namespace) announcement.namespace = options.namespace;
  return announcement;
}
function findRuntime() {
  if (denoGlobal()) return "deno";
  const versions = attempt(() => processGlobal()?.versions);
  if (!versions) return "browser";
  return versions.bun ? "bun" : "node";
}
function defaultName(runtime) {
  if (runtime === "browser") return "browser";
  const os = denoGlobal() ?? builtinModule("node:os");
  return `${attempt(() => os?.hostname()) ?? "localhost"}:${findPid()}`;
}
function findPid() {
  return attempt(() => (denoGlobal() ?? processGlobal())?.pid) ?? 0;
}
function findOs() {
  const deno = denoGlobal();
  if (deno) {
    const platform = deno.build.os === "windows" ? "win32" : deno.build.os;
    const arch = ARCHITECTURES[deno.build.arch] ?? deno.build.arch;
    return `${platform} ${attempt(() => deno.osRelease()) ?? "unknown"} (${arch})`;
  }
  const process2 = processGlobal();
  if (!process2) {
    return globalThis.navigator?.platform || "unknown";
  }
  const os = builtinModule("node:os");
  const release = attempt(() => os?.release()) ?? "unknown";
  return `${process2.platform ?? "unknown"} ${release} (${process2.arch ?? "unknown"})`;
}
function findLanguage() {
  const { navigator } = globalThis;
  if (navigator?.language) return navigator.language;
  return attempt(() => new Intl.DateTimeFormat().resolvedOptions().locale) ?? null;
}

// sdk/typescript/typed/checked_function.ts
var ERRORS_MAX = 20;
var TEXT_CHARS_MAX = 500;
function formatsOf(id, options) {
  const { input, output } = options;
  const request = options.request_format === void 0 ? jsonSchemaOf(id, "input", input) : options.request_format;
  const response = options.response_format === void 0 ? jsonSchemaOf(id, "output", output) : options.response_format;
  return {
    ...isSent(request) && {
      request_format: request
    },
    ...isSent(response) && {
      response_format: response
    }
  };
}
function isSent(format) {
  return format !== void 0 && format !== null;
}
function jsonSchemaOf(id, side, schema) {
  if (schema === void 0) return void 0;
  const standard = schema?.["~standard"];
  if (typeof standard?.validate !== "function") {
    const libraries = "a schema of zod, valibot, arktype or another library of Standard Schema";
    throw invalid(`${side} of ${id} must be ${libraries}, got ${show(schema)}`);
  }
  const write2 = standard.jsonSchema?.[side];
  if (typeof write2 !== "function") return void 0;
  try {
    const { $schema: _draft, ...rest } = write2({
      target: "draft-2020-12"
    });
    return rest;
  } catch (thrown) {
    const format = side === "input" ? "request_format" : "response_format";
    throw invalid(`${side} of ${id} cannot be written as JSON Schema: ${thrownText(thrown)}; set ${format}, or ${format}: null for none`);
  }
}
function checkedHandler(id, handler, options) {
  const { input, output } = options;
  if (!input && !output) return handler;
  return async (payload, metadata, context) => {
    const value = input ? await check(input, payload, "invalid_payload", `Payload of ${id}`) : payload;
    const result = await handler(value, metadata, context);
    return output ? await check(output, result, "invalid_result", `Result of ${id}`) : result;
  };
}
async function check(schema, value, code, what) {
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return result.value;
  const errors = result.issues.slice(0, ERRORS_MAX).map((issue) => ({
    path: pointerOf(issue.path ?? []).slice(0, TEXT_CHARS_MAX),
    message: String(issue.message).slice(0, TEXT_CHARS_MAX)
  }));
  const [first = {
    path: "",
    message: ""
  }] = errors;
  const problem = `${first.path === "" ? "" : `${first.path} `}${first.message}`;
  throw new EngineError(code, `${what} does not fit its schema: ${problem}`, {
    details: {
      errors
    }
  });
}
function pointerOf(path) {
  return path.map((part) => {
    const key = typeof part === "object" ? part.key : part;
    return `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }).join("");
}

// sdk/typescript/implementation.ts
function planFunction(id, implementation, options) {
  checkId("A function's id", id, "math::add");
  const invocation = isInvocation(implementation) ? readInvocation(id, implementation) : void 0;
  if (!invocation) checkCallable(`The handler of ${id}`, implementation);
  const { description, metadata, namespace } = options;
  checkNamespace(namespace);
  const message = {
    type: "registerfunction",
    id,
    ...description !== void 0 && {
      description
    },
    ...formatsOf(id, options),
    ...metadata !== void 0 && {
      metadata
    },
    ...invocation !== void 0 && {
      invocation
    },
    ...namespace !== void 0 && {
      namespace
    }
  };
  const handler = invocation ? notInvokable(id) : checkedHandler(id, implementation, options);
  return {
    message,
    handler
  };
}
function readInvocation(id, given) {
  const { url, method, timeout_ms, headers, auth } = given;
  if (!isWebAddress(url)) {
    const example = "https://api.example.com/quote";
    throw invalid(`The url of ${id} must be an address such as ${example}, got ${show(url)}`);
  }
  if (timeout_ms !== void 0) checkTimeout(`timeout_ms of ${id}`, timeout_ms);
  return {
    url,
    ...method !== void 0 && {
      method
    },
    ...timeout_ms !== void 0 && {
      timeout_ms
    },
    ...headers !== void 0 && {
      headers: {
        ...headers
      }
    },
    ...auth !== void 0 && {
      auth: {
        ...auth
      }
    }
  };
}
function isInvocation(implementation) {
  return typeof implementation === "object" && implementation !== null && "url" in implementation;
}
function isWebAddress(url) {
  return typeof url === "string" && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}
function notInvokable(id) {
  return () => {
    const message = `${id} is served by its URL, not by its worker`;
    throw new EngineError("function_not_invokable", message);
  };
}
function planTrigger(trigger) {
  const { type, function_id, config, metadata, namespace, trigger_namespace } = trigger;
  checkId("A trigger's type", type, "http");
  checkId("A trigger's function_id", function_id, "math::add");
  checkNamespace(namespace);
  checkNamespace(trigger_namespace);
  return {
    type: "registertrigger",
    id: newId(),
    trigger_type: type,
    function_id,
    ...namespace !== void 0 && {
      namespace
    },
    ...trigger_namespace !== void 0 && {
      trigger_namespace
    },
    ...metadata !== void 0 && {
      metadata
    },
    ...config !== void 0 && {
      config
    }
  };
}
function planTriggerType(type, handlers) {
  const { id, description, trigger_request_format, call_request_format, namespace } = type;
  checkId("A trigger type's id", id, "file-watch");
  checkNamespace(namespace);
  checkCallable(`registerTrigger of ${id}`, handlers?.registerTrigger);
  checkCallable(`unregisterTrigger of ${id}`, handlers?.unregisterTrigger);
  return {
    type: "registertriggertype",
    id,
    description: description ?? "",
    ...trigger_request_format !== void 0 && {
      trigger_request_format
    },
    ...call_request_format !== void 0 && {
      call_request_format
    },
    ...namespace !== void 0 && {
      namespace
    }
  };
}
function withQueue(worker, called, { queue, namespace }) {
  if (queue === void 0) return called;
  const { id } = called;
  const config = {
    ...queue
  };
  const trigger = worker.registerTrigger({
    type: "queue",
    function_id: id,
    config,
    namespace
  });
  return together(id, [
    trigger,
    called
  ]);
}
function together(id, registrations) {
  return {
    id,
    unregister() {
      for (const each of registrations) each.unregister();
    }
  };
}

// sdk/typescript/inbound.ts
var FATAL_REJECTION = "WORKER_NAMESPACE_CONFLICT";
var REFUSED = "AUTH_ERROR";
var CANONICAL_START = new RegExp(String.raw`^\{"type":"(invokefunction|invocationresult)","invocation_id":"([^"\\]+)"` + String.raw`(?:,"function_id":"([^"\\]*)")?`);
var FRAME_DEPTH_MAX = JSON_DEPTH_MAX + 1;
function receive(text, connection, setup) {
  if (isTooDeep(text, FRAME_DEPTH_MAX)) {
    const message2 = `it is nested more deeply than ${JSON_DEPTH_MAX} levels`;
    const error = new EngineError("bad_message", message2);
    setup.report(failUnreadable(text, error, connection, setup));
    return;
  }
  const { channels } = setup;
  const hasRefs = channels !== void 0 && mayHoldRefs(text);
  if (!hasRefs && setup.calls.settleFrame(text)) return;
  let message;
  try {
    message = decodeEngineMessage(text);
    if (hasRefs) reviveRefs(message, channels);
  } catch (thrown) {
    setup.report(failUnreadable(text, thrown, connection, setup));
    return;
  }
  dispatch(message, connection, setup, channels ? void 0 : text);
}
function reviveRefs(message, channels) {
  if (message.type === "invocationresult") {
    if (message.result !== void 0) message.result = channels.revive(message.result);
    return;
  }
  if (message.type !== "invokefunction" && message.type !== "invocationprogress") return;
  if (message.data !== void 0) message.data = channels.revive(message.data);
}
function dispatch(message, connection, setup, frame) {
  switch (message.type) {
    case "invokefunction":
      void setup.handlers.run(message, connection, frame);
      return;
    case "invocationresult":
      return setup.calls.settle(message);
    case "invocationprogress":
      return setup.calls.progress(message);
    case "cancelinvocation":
      return setup.handlers.cancel(message);
    case "registertrigger":
      void setup.triggers.register(message, connection);
      return;
    case "unregistertrigger":
      return setup.triggers.unregister(message);
    case "workerregistered":
      connection.judged?.(true);
      return setup.registered(message);
    case "triggerregistrationresult":
      return reportRejectedTrigger(message, setup);
    case "registrationrejected":
      return rejectRegistration(message, setup);
    case "error":
      if (message.error.code === REFUSED) connection.judged?.(false);
      return setup.report(new EngineError(message.error.code, message.error.message));
    case "ping":
      return connection.send(encodeMessage({
        type: "pong"
      }));
    case "pong":
      return;
  }
}
function failUnreadable(text, error, connection, { calls }) {
  const { type, invocation_id, function_id } = readEnvelope(text);
  const body = errorBody("bad_message", error.message);
  if (type === "invocationresult" && invocation_id) calls.fail(invocation_id, body);
  if (type === "invokefunction" && invocation_id) {
    connection.send(encodeFailure({
      type,
      invocation_id,
      function_id: function_id ?? ""
    }, body));
  }
  return new EngineError("bad_message", `A frame of the engine cannot be read: ${error.message}`);
}
function readEnvelope(text) {
  const [, type, invocation_id, function_id] = CANONICAL_START.exec(text) ?? [];
  if (type) return {
    type,
    invocation_id,
    function_id
  };
  const parsed = isTooDeep(text, FRAME_DEPTH_MAX) ? void 0 : attempt(() => JSON.parse(text));
  const own = (name) => {
    return typeof parsed?.[name] === "string" ? parsed[name] : void 0;
  };
  return {
    type: own("type"),
    invocation_id: own("invocation_id"),
    function_id: own("function_id")
  };
}
function reportRejectedTrigger(message, setup) {
  const { id, trigger_type, error } = message;
  if (!error) return;
  const text = `Trigger registration failed for "${id}" (${trigger_type}): ${error.message}`;
  setup.report(new EngineError(error.code, text));
}
function rejectRegistration(message, setup) {
  const { code, namespace, function_id, worker_name } = message;
  const what = function_id ?? worker_name ?? "a registration";
  const reason = message.message ? `: ${message.message}` : "";
  const error = new EngineError(code, `The engine refused ${what} in namespace ${namespace} (${code})${reason}`);
  if (code === FATAL_REJECTION) setup.rejected(error);
  else setup.report(error);
}

// sdk/typescript/builtin/live_configuration.ts
var RETRY_FIRST_MS = 1e3;
var RETRY_MAX_MS = 6e4;
var RETRY_JITTER = 0.3;
async function followConfiguration(setup, id, options) {
  checkId("The id of a configuration", id, "mail");
  if (options.onError) checkCallable("onError", options.onError);
  const followed = new FollowedConfiguration(setup, id, options);
  try {
    await followed.begin();
    return followed;
  } catch (thrown) {
    followed.close();
    throw thrown;
  }
}
var FollowedConfiguration = class {
  id;
  #setup;
  #options;
  #listeners = /* @__PURE__ */ new Set();
  /** Run when it is closed. */
  #ends = /* @__PURE__ */ new Set();
  #registration;
  #stopListening;
  #current;
  /** JSON of the value, by which changes are known. */
  #text;
  #error;
  #reading;
  /** Something happened since the read under way began. */
  #isStale = false;
  #isClosed = false;
  #retryMs = RETRY_FIRST_MS;
  #cancelRetry;
  constructor(setup, id, options) {
    this.id = id;
    this.#setup = setup;
    this.#options = options;
  }
  get value() {
    return this.#current.value;
  }
  get version() {
    return this.#current.version;
  }
  get error() {
    return this.#error;
  }
  /**
   * Follows events, then reads: no change is missed.
   *
   * @throws {EngineError} What the first read failed with.
   */
  async begin() {
    const { worker } = this.#setup;
    if (this.#isDescribed) await this.#register();
    const function_id = `configuration-changed::${newId()}`;
    const called = worker.registerFunction(function_id, () => this.#changed(), {
      description: `Changes of configuration ${this.id}`,
      metadata: {
        internal: true
      }
    });
    const config = {
      configuration_id: this.id
    };
    const trigger = worker.registerTrigger({
      type: "configuration",
      function_id,
      config
    });
    this.#registration = together(trigger.id, [
      trigger,
      called
    ]);
    this.#stopListening = worker.onConnectionState((state) => this.#connection(state));
    this.#changed();
    await this.#reading;
    if (!this.#current) throw this.#error;
  }
  changes({ signal } = {}) {
    const latest = new Latest();
    if (this.#isClosed || signal?.aborted) {
      latest.end();
      return latest;
    }
    const remove = this.onChange((value) => latest.put(value));
    const end3 = () => latest.end();
    latest.ended = () => {
      remove();
      this.#ends.delete(end3);
      signal?.removeEventListener("abort", end3);
    };
    this.#ends.add(end3);
    signal?.addEventListener("abort", end3, {
      once: true
    });
    return latest;
  }
  onChange(listener) {
    checkCallable("A listener for changes", listener);
    const own = (value) => listener(value);
    if (!this.#isClosed) this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }
  close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopListening?.();
    this.#cancelRetry?.();
    this.#registration?.unregister();
    this.#listeners.clear();
    for (const end3 of [
      ...this.#ends
    ]) end3();
  }
  [Symbol.dispose]() {
    this.close();
  }
  get #isDescribed() {
    const { onError: _onError, ...described } = this.#options;
    return Object.values(described).some((value) => value !== void 0);
  }
  #register() {
    const { onError: _onError, ...described } = this.#options;
    const payload = {
      id: this.id,
      ...described
    };
    return this.#setup.worker.trigger({
      function_id: "configuration::register",
      payload
    });
  }
  #connection(state) {
    if (state === "connected") this.#changed();
    if (state === "disconnected" || state === "failed") this.close();
  }
  /** The value may be another one: reads it, after the read that is under way. */
  #changed() {
    if (this.#isClosed) return;
    this.#isStale = true;
    this.#reading ??= this.#apart(() => this.#read());
  }
  /** Never rejects. */
  async #read() {
    this.#cancelRetry?.();
    this.#cancelRetry = void 0;
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      try {
        const read2 = await this.#get();
        if (!this.#isClosed || !this.#current) this.#take(read2);
      } catch (thrown) {
        this.#fail(thrown);
      }
    }
    this.#reading = void 0;
    if (!this.#error || !this.#current || this.#isClosed) return;
    const { clock, random = Math.random } = this.#setup;
    const ms = this.#retryMs * (1 + RETRY_JITTER * (2 * random() - 1));
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MAX_MS);
    this.#cancelRetry = clock.after(ms, () => this.#changed());
  }
  /** Runs a task outside of any call. */
  #apart(task) {
    const nothing = {
      deadline: void 0,
      traceparent: void 0,
      baggage: void 0
    };
    return this.#setup.scopes.run(nothing, task);
  }
  async #get() {
    const request = {
      function_id: "configuration::get",
      payload: {
        id: this.id
      }
    };
    const { worker } = this.#setup;
    try {
      return await worker.trigger(request);
    } catch (thrown) {
      const isGone = thrown instanceof EngineError && thrown.code === "NOT_REGISTERED";
      if (!isGone || !this.#isDescribed) throw thrown;
      await this.#register();
      return await worker.trigger(request);
    }
  }
  #take({ value, version }) {
    const text = JSON.stringify(value);
    this.#error = void 0;
    this.#retryMs = RETRY_FIRST_MS;
    const isFirst = !this.#current;
    const isSame = text === this.#text;
    this.#text = text;
    this.#current = {
      value: isSame ? this.#current.value : value,
      version
    };
    if (isFirst || isSame) return;
    for (const listener of [
      ...this.#listeners
    ]) {
      try {
        listener(value);
      } catch (cause) {
        const message = `A listener for changes of ${this.id} failed: ${thrownText(cause)}`;
        this.#report(new EngineError("invocation_failed", message, {
          cause
        }));
      }
    }
  }
  #fail(thrown) {
    const error = thrown instanceof EngineError ? thrown : new EngineError("invocation_failed", thrownText(thrown), {
      cause: thrown
    });
    const isNew = error.message !== this.#error?.message;
    this.#error = error;
    if (!isNew || !this.#current || this.#isClosed) return;
    const message = `Configuration ${this.id} keeps its value: ${error.message}`;
    this.#report(new EngineError(error.code, message, {
      cause: error
    }));
  }
  #report(error) {
    const { onError } = this.#options;
    if (!onError) return this.#setup.report(error);
    try {
      onError(error);
    } catch (cause) {
      const message = `onError of configuration ${this.id} failed: ${thrownText(cause)}`;
      this.#setup.report(new EngineError("invocation_failed", message, {
        cause
      }));
    }
  }
};
var Latest = class {
  /** Called once, at the end. */
  ended;
  #next;
  #waiters = [];
  #isOver = false;
  put(value) {
    const waiter = this.#waiters.shift();
    if (waiter) waiter({
      done: false,
      value
    });
    else this.#next = {
      value
    };
  }
  end() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.ended?.();
    for (const waiter of this.#waiters.splice(0)) waiter({
      done: true,
      value: void 0
    });
  }
  next() {
    const next = this.#next;
    this.#next = void 0;
    if (next) return Promise.resolve({
      done: false,
      value: next.value
    });
    if (this.#isOver) return Promise.resolve({
      done: true,
      value: void 0
    });
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
  return() {
    this.#next = void 0;
    this.end();
    return Promise.resolve({
      done: true,
      value: void 0
    });
  }
  [Symbol.asyncIterator]() {
    return this;
  }
};

// sdk/typescript/wire/large_map.ts
var PART_MAX = 8192;
var PARTS = 64;
var HASH_CHARS = 32;
var LargeMap = class {
  #single = /* @__PURE__ */ new Map();
  #parts = [];
  #size = 0;
  /** Number of entries. */
  get size() {
    return this.#size;
  }
  /** Entries of the largest map behind it. */
  get largestPart() {
    return Math.max(...this.#all().map(({ size }) => size));
  }
  /** The value of a key; `undefined`: it has none. */
  get(key) {
    return (this.#single ?? this.#parts[partOf(key)]).get(key);
  }
  /** Whether the key has an entry. */
  has(key) {
    return (this.#single ?? this.#parts[partOf(key)]).has(key);
  }
  /** Adds an entry, or changes that of the key. */
  set(key, value) {
    if (this.#single !== void 0 && this.#single.size >= PART_MAX) this.#divide(this.#single);
    const part = this.#single ?? this.#parts[partOf(key)];
    const before = part.size;
    part.set(key, value);
    this.#size += part.size - before;
    return this;
  }
  /** Ends an entry; `false` when the key has none. */
  delete(key) {
    const isDeleted = (this.#single ?? this.#parts[partOf(key)]).delete(key);
    if (isDeleted && --this.#size === 0) this.clear();
    return isDeleted;
  }
  /** Ends all entries. */
  clear() {
    this.#single = /* @__PURE__ */ new Map();
    this.#parts = [];
    this.#size = 0;
  }
  *keys() {
    for (const part of this.#all()) yield* part.keys();
    return void 0;
  }
  *values() {
    for (const part of this.#all()) yield* part.values();
    return void 0;
  }
  *[Symbol.iterator]() {
    for (const part of this.#all()) yield* part;
    return void 0;
  }
  #all() {
    return this.#single === void 0 ? this.#parts : [
      this.#single
    ];
  }
  #divide(single) {
    const parts = Array.from({
      length: PARTS
    }, () => /* @__PURE__ */ new Map());
    for (const [key, value] of single) parts[partOf(key)].set(key, value);
    [this.#parts, this.#single] = [
      parts,
      void 0
    ];
  }
};
function partOf(key) {
  const { length } = key;
  let hash = 2166136261 ^ length;
  const headEnd = Math.min(length, HASH_CHARS);
  for (let i = 0; i < headEnd; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 16777619);
  for (let i = Math.max(headEnd, length - HASH_CHARS); i < length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 16777619);
  }
  return (hash ^ hash >>> 15) & PARTS - 1;
}

// sdk/typescript/provided_triggers.ts
var ProvidedTriggers = class {
  #setup;
  #watched = new LargeMap();
  /** By id; of each the last one that was passed to its provider. */
  #ending = /* @__PURE__ */ new Map();
  constructor(setup) {
    this.#setup = setup;
  }
  /** Number of watched triggers. */
  get size() {
    return this.#watched.size;
  }
  /**
   * Passes a trigger to its provider and sends the result, at once if the provider is synchronous:
   * thousands of triggers may come, and a promise is kept for none. Never throws or rejects.
   */
  register(message, connection) {
    const { id, trigger_type } = message;
    const handlers = this.#setup.find(message.trigger_namespace, trigger_type);
    if (!handlers) {
      const error2 = errorBody("trigger_type_not_found", "Trigger type not found");
      return connection.send(resultFrame(message, error2));
    }
    this.#end(id);
    const watched = {
      trigger_type,
      handlers,
      accepted: false,
      done: void 0,
      begin: void 0
    };
    this.#watched.set(id, watched);
    const before = this.#ending.get(id);
    if (before) {
      const turn = turnAfter(before, watched).then((isWanted) => {
        return isWanted ? this.#accept(message, watched) : void 0;
      });
      return watched.done = this.#answerAfter(turn, message, watched, connection);
    }
    let error;
    try {
      const accepted = this.#accept(message, watched);
      if (accepted) {
        return watched.done = this.#answerAfter(accepted, message, watched, connection);
      }
    } catch (thrown) {
      error = rejection(thrown);
    }
    this.#answer(message, watched, connection, error);
  }
  /** Calls `registerTrigger`; `undefined` if it was synchronous. */
  #accept(message, watched) {
    const returned = watched.handlers.registerTrigger(instanceOf(message));
    if (returned instanceof Object) {
      return Promise.resolve(returned).then(() => void (watched.accepted = true));
    }
    watched.accepted = true;
    return void 0;
  }
  async #answerAfter(accepted, message, watched, connection) {
    let error;
    try {
      await accepted;
    } catch (thrown) {
      error = rejection(thrown);
    }
    watched.done = void 0;
    this.#answer(message, watched, connection, error);
  }
  #answer(message, watched, connection, error) {
    const { id } = message;
    if (error && this.#watched.get(id) === watched) this.#watched.delete(id);
    connection.send(resultFrame(message, error));
  }
  /** Stops watching a trigger; ignored if it is not watched. */
  unregister({ id }) {
    this.#end(id);
  }
  /** Stops watching all triggers, or those of one type. */
  unregisterAll(handlers) {
    for (const [id, watched] of [
      ...this.#watched
    ]) {
      if (!handlers || watched.handlers === handlers) this.#end(id);
    }
  }
  /** Stops watching; the next `registerTrigger` of the same id waits for the provider. */
  #end(id) {
    const watched = this.#watched.get(id);
    if (!watched) return;
    this.#watched.delete(id);
    if (watched.begin) return this.#drop(id, watched.begin);
    const stopped = watched.accepted ? this.#stop(id, watched) : watched.done?.then(() => watched.accepted ? this.#stop(id, watched) : void 0);
    if (!stopped) return;
    const ending = {
      next: void 0
    };
    this.#ending.set(id, ending);
    void stopped.then(() => {
      this.#ending.delete(id);
      const { next } = ending;
      if (!next) return;
      const { begin } = next;
      next.begin = void 0;
      begin(true);
    });
  }
  /** Ends a trigger that its provider does not know yet. */
  #drop(id, begin) {
    this.#ending.get(id).next = void 0;
    begin(false);
  }
  /** Calls `unregisterTrigger`; `undefined` if it was synchronous. Never rejects. */
  #stop(id, { trigger_type, handlers }) {
    const failed2 = (thrown) => {
      const { code, message } = rejection(thrown);
      this.#setup.report(new EngineError(code, `A trigger could not be ended: ${message}`));
    };
    try {
      const returned = handlers.unregisterTrigger({
        id,
        trigger_type
      });
      return returned instanceof Object ? Promise.resolve(returned).then(() => {
      }, failed2) : void 0;
    } catch (thrown) {
      failed2(thrown);
      return void 0;
    }
  }
};
function turnAfter(before, watched) {
  before.next = watched;
  return new Promise((resolve) => watched.begin = resolve);
}
function instanceOf(message) {
  const { id, trigger_type, function_id, config, metadata, namespace } = message;
  const target = namespace === DEFAULT_NAMESPACE ? void 0 : namespace;
  return {
    id,
    trigger_type,
    function_id,
    config: config ?? {},
    metadata,
    namespace: target
  };
}
function rejection(thrown) {
  return errorBody("trigger_registration_failed", thrownText(thrown));
}
function resultFrame(message, error) {
  const { id, trigger_type, function_id } = message;
  return encodeMessage({
    type: "triggerregistrationresult",
    id,
    trigger_type,
    function_id,
    ...error && {
      error
    }
  });
}

// sdk/typescript/registrations.ts
var REGISTRATION_BYTES_MAX = 256 * 1024;
var Registrations = class {
  #functions = /* @__PURE__ */ new Map();
  #types = /* @__PURE__ */ new Map();
  #triggers = /* @__PURE__ */ new Map();
  #send;
  #typeRemoved;
  /** `send` sends a frame if connected; `typeRemoved` is called when a type is unregistered. */
  constructor(send, typeRemoved) {
    this.#send = send;
    this.#typeRemoved = typeRemoved;
  }
  /** Registers a function. @throws {EngineError} `serialization_error` */
  addFunction(message, handler) {
    const { id, namespace } = message;
    const removal = {
      type: "unregisterfunction",
      id,
      ...namespace && {
        namespace
      }
    };
    const entry = {
      text: encodeRegistration(message),
      handler
    };
    return this.#add(this.#functions, id, keyOf2(namespace, id), entry, removal);
  }
  /** Registers a trigger type. @throws {EngineError} `serialization_error` */
  addType(message, handlers) {
    const { id, namespace } = message;
    const removal = {
      type: "unregistertriggertype",
      id,
      ...namespace && {
        namespace
      }
    };
    const entry = {
      text: encodeRegistration(message),
      handlers
    };
    return this.#add(this.#types, id, keyOf2(namespace, id), entry, removal, () => {
      this.#typeRemoved(handlers);
    });
  }
  /** Registers a trigger. @throws {EngineError} `serialization_error` */
  addTrigger(message) {
    const { id, trigger_type } = message;
    const text = encodeRegistration(message);
    this.#triggers.set(id, text);
    this.#send(text);
    const unregister = () => {
      if (!this.#triggers.delete(id)) return;
      this.#send(encodeMessage({
        type: "unregistertrigger",
        id,
        trigger_type
      }));
    };
    return {
      id,
      unregister
    };
  }
  /** The handler of a function. */
  handler(namespace, function_id) {
    return this.#functions.get(keyOf2(namespace, function_id))?.handler;
  }
  /** The handlers of a trigger type. */
  triggerHandlers(namespace, id) {
    return this.#types.get(keyOf2(namespace, id))?.handlers;
  }
  /** The frames of all registrations, in the order for a new connection. */
  frames() {
    return [
      ...this.#types.values(),
      ...this.#functions.values()
    ].map(({ text }) => text).concat([
      ...this.#triggers.values()
    ]);
  }
  #add(table, id, key, entry, removal, removed) {
    table.set(key, entry);
    this.#send(entry.text);
    const unregister = () => {
      if (table.get(key) !== entry) return;
      table.delete(key);
      this.#send(encodeMessage(removal));
      removed?.();
    };
    return {
      id,
      unregister
    };
  }
};
function encodeRegistration(message) {
  const text = encodeMessage(message);
  const what = `The registration of ${message.id}`;
  checkSize(what, text, REGISTRATION_BYTES_MAX);
  if (!isTooDeep(text)) return text;
  const reason = `is nested more deeply than ${JSON_DEPTH_MAX} levels`;
  throw new EngineError("serialization_error", `${what} ${reason}`);
}
function keyOf2(namespace, id) {
  const isDefault = namespace === void 0 || namespace === DEFAULT_NAMESPACE;
  if (isDefault && !id.startsWith("\0")) return id;
  return `\0${namespace ?? DEFAULT_NAMESPACE}\0${id}`;
}

// sdk/typescript/builtin/state_watch.ts
var RETRY_FIRST_MS2 = 500;
var RETRY_MAX_MS2 = 3e4;
var PAGE_ENTRIES = 100;
var READS_AT_ONCE = 16;
function watchState(setup, place, options) {
  checkId("scope", place.scope, "stock");
  if (place.key !== void 0) checkId("key", place.key, "apples");
  return new StateWatch(setup, place, options);
}
var StateWatch = class {
  #setup;
  #place;
  #options;
  #changes;
  /** Versions that the program has seen; 0: it has seen that there is none. */
  #seen = /* @__PURE__ */ new Map();
  /** Keys of which a change was reported. */
  #changed = /* @__PURE__ */ new Set();
  #ending = new AbortController();
  /** All entries have to be compared. */
  #isStale = true;
  /** Ends a wait for changes, and one after a failure. */
  #wake;
  #resume;
  #retryMs = RETRY_FIRST_MS2;
  #reported;
  constructor(setup, place, options) {
    this.#setup = setup;
    this.#place = place;
    this.#options = options;
    this.#changes = this.#run();
  }
  next() {
    return this.#changes.next();
  }
  return() {
    this.#end();
    return this.#changes.return(void 0);
  }
  [Symbol.asyncIterator]() {
    return this;
  }
  async [Symbol.asyncDispose]() {
    await this.return();
  }
  get #isOver() {
    return this.#ending.signal.aborted;
  }
  async *#run() {
    const { signal } = this.#options;
    if (signal?.aborted || this.#isOver) return void 0;
    const end3 = () => this.#end();
    signal?.addEventListener("abort", end3, {
      once: true
    });
    const registration = this.#follow();
    const stopListening = this.#setup.worker.onConnectionState((state) => this.#connection(state));
    let isFirst = true;
    try {
      while (!this.#isOver) {
        try {
          if (this.#isStale) yield* this.#all();
          else if (this.#changed.size > 0) yield* this.#some();
          else await this.#woken();
          isFirst = false;
          this.#retryMs = RETRY_FIRST_MS2;
          this.#reported = void 0;
        } catch (thrown) {
          if (this.#isOver) break;
          if (isFirst) throw thrown;
          await this.#failed(thrown);
        }
      }
    } finally {
      this.#end();
      registration.unregister();
      stopListening();
      signal?.removeEventListener("abort", end3);
    }
    return void 0;
  }
  /** Registers for events; each marks its key. */
  #follow() {
    const { worker } = this.#setup;
    const { scope, key } = this.#place;
    const function_id = `state-changed::${newId()}`;
    const handler = (event) => {
      this.#changed.add(event.key);
      this.#wake?.();
    };
    const called = worker.registerFunction(function_id, handler, {
      description: `Changes of state ${scope}${key === void 0 ? "" : `/${key}`}`,
      metadata: {
        internal: true
      }
    });
    const config = key === void 0 ? {
      scope
    } : {
      scope,
      key
    };
    const trigger = worker.registerTrigger({
      type: "state",
      function_id,
      config
    });
    return together(trigger.id, [
      trigger,
      called
    ]);
  }
  #connection(state) {
    if (state === "connected") {
      this.#isStale = true;
      this.#wake?.();
      this.#resume?.();
    }
    if (state === "disconnected" || state === "failed") this.#end();
  }
  #end() {
    this.#ending.abort();
    this.#wake?.();
    this.#resume?.();
  }
  /** Compares all entries with what was seen. */
  async *#all() {
    this.#isStale = false;
    const { scope, key } = this.#place;
    if (key !== void 0) return void this.#changed.add(key);
    const found = /* @__PURE__ */ new Set();
    let cursor;
    do {
      const page = await this.#page(scope, cursor);
      for (const { key: key2, value, version } of page.entries) {
        found.add(key2);
        if (this.#seen.get(key2) === version) continue;
        this.#seen.set(key2, version);
        yield {
          key: key2,
          value,
          version
        };
        if (this.#isStale || this.#isOver) return;
      }
      cursor = page.cursor ?? void 0;
    } while (cursor !== void 0 && !this.#isStale);
    if (this.#isStale) return;
    for (const key2 of this.#seen.keys()) if (!found.has(key2)) this.#changed.add(key2);
  }
  async #page(scope, cursor) {
    try {
      const after = cursor === void 0 ? {} : {
        cursor
      };
      return await this.#call("state::list_entries", {
        scope,
        limit: PAGE_ENTRIES,
        ...after
      });
    } catch (thrown) {
      this.#isStale = true;
      throw thrown;
    }
  }
  /** Reads some of the entries that changed. */
  async *#some() {
    const { scope, key: only } = this.#place;
    const keys = [
      ...this.#changed
    ].slice(0, READS_AT_ONCE);
    for (const key of keys) this.#changed.delete(key);
    const outcomes = await Promise.allSettled(keys.map((key) => this.#call("state::entry", {
      scope,
      key
    })));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === "rejected") this.#changed.add(keys[i]);
    }
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === "rejected") continue;
      const [key, { value, version } = NOTHING2] = [
        keys[i],
        outcome.value
      ];
      const seen = this.#seen.get(key) ?? (only === void 0 ? 0 : void 0);
      if (seen === version) continue;
      if (version === 0 && only === void 0) this.#seen.delete(key);
      else this.#seen.set(key, version);
      yield {
        key,
        value,
        version
      };
      if (this.#isOver) return;
    }
    const failed2 = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed2) throw failed2.reason;
  }
  /** Calls outside of any call whose handler may be running. */
  #call(function_id, payload) {
    const { worker, scopes } = this.#setup;
    const { signal } = this.#ending;
    const nothing = {
      deadline: void 0,
      traceparent: void 0,
      baggage: void 0
    };
    return scopes.run(nothing, () => worker.trigger({
      function_id,
      payload,
      signal
    }));
  }
  /** Waits until something changed, or for the end. */
  #woken() {
    return new Promise((resolve) => this.#wake = resolve);
  }
  /** Waits so long, or for another connection, or for the end. */
  #rested(ms) {
    return new Promise((resolve) => {
      const cancel = this.#setup.clock.after(ms, resolve);
      this.#resume = () => {
        cancel();
        resolve();
      };
    });
  }
  /** Reports what a read failed with, once, and waits. */
  async #failed(thrown) {
    const { scope } = this.#place;
    const error = thrown instanceof EngineError ? thrown : new EngineError("invocation_failed", thrownText(thrown), {
      cause: thrown
    });
    if (error.message !== this.#reported) {
      this.#reported = error.message;
      const message = `The watch of state ${scope} waits: ${error.message}`;
      this.#setup.report(new EngineError(error.code, message, {
        cause: error
      }));
    }
    const ms = this.#retryMs;
    this.#retryMs = Math.min(2 * ms, RETRY_MAX_MS2);
    await this.#rested(ms);
  }
};
var NOTHING2 = {
  value: void 0,
  version: 0
};

// sdk/typescript/builtin/subscriptions.ts
function subscribeTo(worker, topic, handler) {
  checkId("A topic", topic, "orders.created");
  const function_id = `subscription::${newId()}`;
  const options = {
    description: `Messages of ${topic}`,
    metadata: {
      internal: true
    }
  };
  const called = worker.registerFunction(function_id, handler, options);
  const trigger = worker.registerTrigger({
    type: "subscribe",
    function_id,
    config: {
      topic
    }
  });
  return together(trigger.id, [
    trigger,
    called
  ]);
}

// sdk/typescript/builtin/streams.ts
function streamOf(worker, name) {
  checkId("The name of a stream", name, "chat");
  return new WorkerStream(worker, name);
}
var SOURCE_OPS = [
  [
    "get",
    "get"
  ],
  [
    "set",
    "set"
  ],
  [
    "delete",
    "delete"
  ],
  [
    "list",
    "list"
  ],
  [
    "list_groups",
    "listGroups"
  ],
  [
    "update",
    "update"
  ]
];
function createStream(worker, name, source) {
  checkId("The name of a stream", name, "chat");
  if (typeof source !== "object" || source === null) {
    throw invalid(`The source of stream ${name} must be an object, got ${show(source)}`);
  }
  const ops = SOURCE_OPS.filter(([, method]) => method !== "update" || source.update !== void 0);
  for (const [, method] of ops) checkCallable(`${method} of stream ${name}`, source[method]);
  const description = `Keeps the items of stream ${name}`;
  const registered = ops.map(([op, method]) => {
    const handler = (payload, _metadata, context) => source[method](payload, context);
    return worker.registerFunction(`stream::${op}(${name})`, handler, {
      description
    });
  });
  return together(name, registered);
}
var KINDS = {
  stream: {
    group: "stream-event",
    what: "Events"
  },
  "stream:join": {
    group: "stream-join",
    what: "Decides about subscribers"
  },
  "stream:leave": {
    group: "stream-leave",
    what: "Subscribers that left"
  }
};
var WorkerStream = class {
  name;
  #worker;
  constructor(worker, name) {
    this.#worker = worker;
    this.name = name;
  }
  group(id) {
    checkId("A group", id, "room-1");
    return new WorkerStreamGroup(this.#worker, this.name, id);
  }
  async groups() {
    const payload = {
      stream_name: this.name
    };
    return await this.#worker.trigger({
      function_id: "stream::list_groups",
      payload
    });
  }
  onEvent(handler, { group_id, item_id, ...options } = {}) {
    return this.#on("stream", handler, options, {
      group_id,
      item_id
    });
  }
  onJoin(handler, options = {}) {
    checkCallable("The handler of stream:join", handler);
    const { name } = this;
    const decide = async (subscriber, metadata, context) => {
      if (subscriber.stream_name !== name) return void 0;
      const said = await handler(subscriber, metadata, context);
      return said === false ? {
        unauthorized: true
      } : said;
    };
    return this.#on("stream:join", decide, options);
  }
  onLeave(handler, options = {}) {
    checkCallable("The handler of stream:leave", handler);
    const { name } = this;
    const tell = (subscriber, metadata, context) => subscriber.stream_name === name ? handler(subscriber, metadata, context) : void 0;
    return this.#on("stream:leave", tell, options);
  }
  /** A function, and the trigger that calls it for this stream. */
  #on(type, handler, { function_id = `${KINDS[type].group}::${newId()}`, condition_function_id, metadata }, filter = {}) {
    const config = {
      stream_name: this.name
    };
    for (const [key, value] of Object.entries({
      ...filter,
      condition_function_id
    })) {
      if (value !== void 0) config[key] = value;
    }
    const called = this.#worker.registerFunction(function_id, handler, {
      description: `${KINDS[type].what} of stream ${this.name}`,
      metadata: {
        internal: true
      }
    });
    const trigger = this.#worker.registerTrigger({
      type,
      function_id,
      config,
      metadata
    });
    return together(trigger.id, [
      trigger,
      called
    ]);
  }
};
var PAGE_ITEMS = 500;
var WorkerStreamGroup = class {
  stream;
  id;
  #worker;
  constructor(worker, stream, id) {
    this.#worker = worker;
    this.stream = stream;
    this.id = id;
  }
  async get(item_id) {
    return await this.#call("get", {
      item_id
    });
  }
  async set(item_id, item, { ttl_ms } = {}) {
    return await this.#call("set", {
      item_id,
      ...ttl_ms !== void 0 && {
        ttl_ms
      },
      data: item
    });
  }
  async update(item_id, ops) {
    return await this.#call("update", {
      item_id,
      ops
    });
  }
  async delete(item_id) {
    const { old_value } = await this.#call("delete", {
      item_id
    });
    return old_value ?? void 0;
  }
  async list() {
    return await this.#call("list", {});
  }
  async *entries(prefix = "") {
    let cursor;
    do {
      const query = {
        prefix,
        limit: PAGE_ITEMS,
        ...cursor !== void 0 && {
          cursor
        }
      };
      const page = await this.#call("list_items", query);
      for (const { id, data } of page.items) yield [
        id,
        data
      ];
      cursor = page.cursor;
    } while (cursor !== void 0);
  }
  async send(type, data, item_id) {
    await this.#call("send", {
      ...item_id !== void 0 && {
        id: item_id
      },
      type,
      ...data !== void 0 && {
        data
      }
    });
  }
  #call(op, payload) {
    return this.#worker.trigger({
      function_id: `stream::${op}`,
      payload: {
        stream_name: this.stream,
        group_id: this.id,
        ...payload
      }
    });
  }
};

// sdk/typescript/otlp.ts
var DEPTH_MAX = 8;
var VALUE_CHARS_MAX = 32 * 1024;
var SEVERITIES = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17
};
var WRAPPINGS = {
  LOGS: [
    "resourceLogs",
    "scopeLogs",
    "logRecords"
  ],
  OTLP: [
    "resourceSpans",
    "scopeSpans",
    "spans"
  ],
  MTRC: [
    "resourceMetrics",
    "scopeMetrics",
    "metrics"
  ]
};
var utf8 = new TextEncoder();
function encodeLog({ level, message, data, at_ms, trace }) {
  const time = nanos(at_ms);
  return JSON.stringify({
    timeUnixNano: time,
    observedTimeUnixNano: time,
    severityNumber: SEVERITIES[level],
    severityText: level.toUpperCase(),
    body: {
      stringValue: cut2(message)
    },
    ...data !== void 0 && {
      attributes: attributesOf(isObject2(data) ? data : {
        data
      })
    },
    ...trace && {
      traceId: trace.trace_id,
      spanId: trace.span_id,
      flags: trace.isSampled ? 1 : 0
    }
  });
}
function encodeSpan(span) {
  return JSON.stringify({
    traceId: span.trace_id,
    spanId: span.span_id,
    parentSpanId: span.parent_span_id,
    name: span.name,
    kind: 2,
    startTimeUnixNano: nanos(span.start_ms),
    endTimeUnixNano: nanos(span.end_ms),
    attributes: attributesOf(span.attributes),
    status: span.error === void 0 ? {
      code: 1
    } : {
      code: 2,
      message: cut2(span.error)
    }
  });
}
function encodeGauge({ name, unit, value, functionId }, at_ms) {
  const attributes = functionId === void 0 ? {} : {
    attributes: attributesOf({
      "engine.function.id": functionId
    })
  };
  const dataPoints = [
    {
      timeUnixNano: nanos(at_ms),
      asDouble: value,
      ...attributes
    }
  ];
  return JSON.stringify({
    name,
    unit,
    gauge: {
      dataPoints
    }
  });
}
function encodeFrame(signal, groups, version) {
  const [outer, inner, list] = WRAPPINGS[signal];
  const scope = JSON.stringify({
    name: "engine-sdk",
    version
  });
  const parts = groups.map(({ resource, records }) => `{"resource":${JSON.stringify({
    attributes: attributesOf(resource)
  })},"${inner}":[{"scope":${scope},"${list}":[${records.join(",")}]}]}`);
  return utf8.encode(`${signal}{"${outer}":[${parts.join(",")}]}`);
}
function attributesOf(values) {
  return Object.entries(values).flatMap(([key, value]) => value === void 0 ? [] : [
    {
      key: cut2(key),
      value: valueOf(value, 1)
    }
  ]);
}
function valueOf(value, depth) {
  if (value === null) return {};
  if (typeof value === "string") return {
    stringValue: cut2(value)
  };
  if (typeof value === "boolean") return {
    boolValue: value
  };
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? {
      intValue: String(value)
    } : {
      doubleValue: value
    };
  }
  if (depth >= DEPTH_MAX) return {
    stringValue: cut2(JSON.stringify(value))
  };
  if (Array.isArray(value)) {
    return {
      arrayValue: {
        values: value.map((item) => valueOf(item, depth + 1))
      }
    };
  }
  const values = Object.entries(value).map(([key, item]) => ({
    key,
    value: valueOf(item, depth + 1)
  }));
  return {
    kvlistValue: {
      values
    }
  };
}
function parseShown(text) {
  if (text.length > VALUE_CHARS_MAX) return cut2(text);
  const parsed = attempt(() => ({
    value: JSON.parse(text)
  }));
  return parsed ? parsed.value : text;
}
function isObject2(data) {
  return typeof data === "object" && data !== null && !Array.isArray(data);
}
function cut2(text) {
  if (text.length <= VALUE_CHARS_MAX) return text;
  return `${text.slice(0, VALUE_CHARS_MAX)}\u2026`;
}
function nanos(ms) {
  return `${Math.round(ms * 1e3)}000`;
}

// sdk/typescript/process_gauges.ts
var LOOP_LAG_SAMPLE_MS = 50;
var LAGS_MAX = 6e4 / LOOP_LAG_SAMPLE_MS;
var ProcessGauges = class {
  #clock;
  #process;
  #lags = [];
  #cancel;
  #readAt = 0;
  #cpuMicros;
  /** Tests pass another `process`. */
  constructor(clock, process2 = processGlobal()) {
    this.#clock = clock;
    this.#process = process2;
  }
  /** Starts the measurement. */
  start() {
    if (!this.#process || this.#cancel) return;
    this.#readAt = this.#clock.now();
    this.#cpuMicros = this.#readCpu();
    this.#sample();
  }
  /** Ends the measurement. */
  stop() {
    this.#cancel?.();
    this.#cancel = void 0;
    this.#lags.length = 0;
  }
  /** The gauges since the last call; empty while nothing is measured. */
  read() {
    if (!this.#cancel) return [];
    const gauges = [];
    const memory = attempt(() => this.#process?.memoryUsage?.().rss);
    if (memory !== void 0) {
      gauges.push({
        name: "process.memory.usage",
        unit: "By",
        value: memory
      });
    }
    const cpu = this.#cpuShare();
    if (cpu !== void 0) gauges.push({
      name: "process.cpu.utilization",
      unit: "1",
      value: cpu
    });
    const lags = this.#lags.splice(0).sort((one, other) => one - other);
    if (lags.length > 0) {
      const p99 = lags[Math.ceil(lags.length * 0.99) - 1];
      gauges.push({
        name: "engine.event_loop.lag.p99",
        unit: "s",
        value: p99 / 1e3
      });
      gauges.push({
        name: "engine.event_loop.lag.max",
        unit: "s",
        value: lags.at(-1) / 1e3
      });
    }
    return gauges;
  }
  /** Share of one processor since the last call; 1 is all of it. */
  #cpuShare() {
    const [now, micros] = [
      this.#clock.now(),
      this.#readCpu()
    ];
    const before = this.#cpuMicros;
    const elapsedMs = now - this.#readAt;
    this.#readAt = now;
    this.#cpuMicros = micros;
    if (micros === void 0 || before === void 0 || elapsedMs <= 0) return void 0;
    return Math.max(0, micros - before) / 1e3 / elapsedMs;
  }
  #readCpu() {
    const usage = attempt(() => this.#process?.cpuUsage?.());
    return usage && usage.user + usage.system;
  }
  #sample() {
    const due = this.#clock.now() + LOOP_LAG_SAMPLE_MS;
    this.#cancel = this.#clock.after(LOOP_LAG_SAMPLE_MS, () => {
      if (this.#lags.length >= LAGS_MAX) this.#lags.shift();
      this.#lags.push(Math.max(0, this.#clock.now() - due));
      this.#sample();
    });
  }
};

// sdk/typescript/telemetry.ts
var BATCH_MS = 100;
var QUEUE_CHARS_MAX = 1024 * 1024;
var FRAME_CHARS_MAX = 256 * 1024;
var AHEAD_BYTES_MAX = 1024 * 1024;
var RECONNECT_MAX_MS2 = 3e4;
var SPANS_PER_SECOND = 100;
var FIRST_GAUGES_MS = 1e3;
var GAUGES_MS = 5e3;
var GAUGES_MS_MIN = 500;
var GAUGES_MS_MAX = 36e5;
function createTelemetry(url, options, { name, runtime, pid }) {
  if (!sendsTelemetry(options)) return void 0;
  const { clock = platformClock, dial = dialPlatform } = options;
  const headers = telemetryHeaders(options);
  return new Telemetry({
    clock,
    dial,
    url,
    headers,
    service: name,
    runtime,
    pid
  });
}
function sendsTelemetry({ telemetry, dial }) {
  const isOff = /^(false|0)$/i.test(environment("OTEL_ENABLED") ?? "");
  return !isOff && (telemetry ?? dial === void 0);
}
function telemetryUrl(url) {
  const address = attempt(() => new URL(url));
  if (!address) return url;
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/otel`;
  return address.href;
}
function telemetryHeaders({ token, headers = {} }) {
  if (token) return {
    Authorization: `Bearer ${token}`
  };
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() === "authorization");
  return Object.fromEntries(own);
}
var Telemetry = class {
  /** Id of the worker's main connection, once the engine has sent it. */
  workerId;
  /** Measures the handlers. */
  load = () => [];
  #setup;
  #connection;
  #logs = new TelemetryQueue();
  #spans = new TelemetryQueue();
  #spanTokens;
  #gauges;
  #state = "new";
  #cancelFlush;
  #cancelGauges = () => {
  };
  /** Collects records at once; {@linkcode Telemetry.open} connects. */
  constructor(setup) {
    const { clock, dial, url, headers } = setup;
    this.#setup = setup;
    this.#gauges = new ProcessGauges(clock);
    this.#spanTokens = new TokenBucket(SPANS_PER_SECOND, () => clock.now());
    this.#connection = new ReconnectingConnection({
      url: telemetryUrl(url),
      dial,
      dialOptions: {
        headers
      },
      clock,
      reconnect: {
        maxMs: RECONNECT_MAX_MS2
      },
      random: Math.random
    }, {
      opened: (connection) => this.#flush(connection),
      text() {
      },
      lost() {
      },
      failed() {
      },
      state() {
      }
    });
  }
  /** Connects when the worker has connected for the first time; later calls have no effect. */
  open() {
    if (this.#state !== "new") return;
    this.#state = "open";
    this.#connection.start();
    this.#gauges.start();
    this.#readGauges(FIRST_GAUGES_MS);
  }
  /** Records a log line of the running handler; `false` if it is dropped. */
  takeLog({ level, message, data, shown, service }) {
    if (this.#state === "over") return false;
    const text = attempt(() => encodeLog({
      level,
      message,
      ...data !== void 0 && {
        data: shown === void 0 ? null : parseShown(shown)
      },
      at_ms: this.#wall(),
      trace: readTraceparent(runningTraceparent())
    }));
    const isTaken = text !== void 0 && this.#logs.add(service ?? this.#setup.service, text);
    this.#flushSoon();
    return isTaken;
  }
  /** Starts the span of a handler; `undefined` if it is not recorded. */
  startSpan(call, now = this.#setup.clock.now()) {
    if (call.traceparent === void 0 || this.#state === "over") return void 0;
    if (!looksSampled(call.traceparent) || !this.#spanTokens.take(now)) return void 0;
    const ids = readTraceparent(call.traceparent);
    if (!ids) return void 0;
    const { function_id, invocation_id } = call;
    const start_ms = this.#wall();
    return (error) => {
      this.#spans.add(this.#setup.service, encodeSpan({
        trace_id: ids.trace_id,
        span_id: randomSpanId(),
        parent_span_id: ids.span_id,
        name: `execute ${function_id}`,
        start_ms,
        end_ms: start_ms + this.#setup.clock.now() - now,
        attributes: {
          "engine.function.id": function_id,
          "engine.invocation.id": invocation_id,
          "engine.error_code": error?.code
        },
        error: error?.message
      }));
      this.#flushSoon();
    };
  }
  /**
   * Sends the queued records, on `main` if there is no other connection, and disconnects. Resolves
   * when the connection is closed; has no effect the second time.
   */
  stop(main) {
    const isFirst = this.#state !== "over";
    this.#state = "over";
    this.#cancelFlush?.();
    this.#cancelGauges();
    this.#gauges.stop();
    const connection = this.#connection.current ?? main;
    while (isFirst && connection && !this.#isEmpty) this.#send(connection);
    return this.#connection.stop("disconnected");
  }
  get #isEmpty() {
    return this.#logs.isEmpty && this.#spans.isEmpty;
  }
  #flushSoon() {
    if (this.#cancelFlush || !this.#connection.current) return;
    this.#cancelFlush = this.#setup.clock.after(BATCH_MS, () => {
      this.#cancelFlush = void 0;
      const { current } = this.#connection;
      if (current) this.#flush(current);
    });
  }
  #flush(connection) {
    if ((connection.queuedBytes ?? 0) < AHEAD_BYTES_MAX) this.#send(connection);
    if (!this.#isEmpty) this.#flushSoon();
  }
  /** Sends at most one frame of logs and one of spans. */
  #send(connection) {
    const dropped = this.#logs.takeDropped();
    const logs = this.#logs.takeFrame();
    if (dropped > 0) logs.push({
      service: this.#setup.service,
      records: [
        this.#dropped(dropped)
      ]
    });
    if (logs.length > 0) connection.send(this.#frame("LOGS", logs));
    if (!this.#spans.isEmpty) connection.send(this.#frame("OTLP", this.#spans.takeFrame()));
  }
  #dropped(lines) {
    const message = "Log lines were left out, since there were more than can be sent";
    return encodeLog({
      level: "warn",
      message,
      data: {
        lines
      },
      at_ms: this.#wall()
    });
  }
  #readGauges(ms) {
    this.#cancelGauges = this.#setup.clock.after(ms, () => {
      this.#readGauges(gaugesMs());
      const { current } = this.#connection;
      if (!current || (current.queuedBytes ?? 0) >= AHEAD_BYTES_MAX) return;
      const at_ms = this.#wall();
      const gauges = [
        ...this.#gauges.read(),
        ...this.load()
      ];
      const records = gauges.map((gauge) => encodeGauge(gauge, at_ms));
      const { service } = this.#setup;
      if (records.length > 0) current.send(this.#frame("MTRC", [
        {
          service,
          records
        }
      ]));
    });
  }
  #frame(signal, groups) {
    const own = groups.map(({ service, records }) => ({
      resource: this.#resource(service),
      records
    }));
    return encodeFrame(signal, own, SDK_VERSION);
  }
  #resource(service) {
    const { runtime, pid } = this.#setup;
    return {
      "service.name": service,
      "service.instance.id": this.workerId,
      "telemetry.sdk.name": "engine-sdk",
      "telemetry.sdk.language": runtime === "browser" ? "webjs" : "nodejs",
      "telemetry.sdk.version": SDK_VERSION,
      "process.pid": pid,
      "process.runtime.name": runtime,
      "process.runtime.version": attempt(() => processGlobal()?.versions?.[runtime])
    };
  }
  #wall() {
    const { clock } = this.#setup;
    return clock.wall ? clock.wall() : wallTime();
  }
};
function gaugesMs() {
  const set = Number(environment("OTEL_METRIC_EXPORT_INTERVAL") ?? GAUGES_MS);
  if (!Number.isFinite(set)) return GAUGES_MS;
  return Math.min(GAUGES_MS_MAX, Math.max(GAUGES_MS_MIN, set));
}
function randomSpanId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
var TelemetryQueue = class {
  #charsMax;
  #records = [];
  #chars = 0;
  #dropped = 0;
  constructor(charsMax = QUEUE_CHARS_MAX) {
    this.#charsMax = charsMax;
  }
  get isEmpty() {
    return this.#records.length === 0;
  }
  /** Adds a record; `false` if the limit is reached and the record is dropped. */
  add(service, text) {
    if (this.#chars + text.length > this.#charsMax) {
      this.#dropped++;
      return false;
    }
    this.#records.push({
      service,
      text
    });
    this.#chars += text.length;
    return true;
  }
  /** Number of records that were dropped since the last call. */
  takeDropped() {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }
  /** Removes the oldest records, at least one and at most a frame of them, grouped by service. */
  takeFrame() {
    const groups = /* @__PURE__ */ new Map();
    let count = 0;
    let chars = 0;
    for (const { service, text } of this.#records) {
      if (count > 0 && chars + text.length > FRAME_CHARS_MAX) break;
      count++;
      chars += text.length;
      const records = groups.get(service);
      if (records) records.push(text);
      else groups.set(service, [
        text
      ]);
    }
    this.#records = this.#records.slice(count);
    this.#chars -= chars;
    return [
      ...groups
    ].map(([service, records]) => ({
      service,
      records
    }));
  }
};
var TokenBucket = class {
  #perSecond;
  #now;
  #tokens;
  #at;
  /** `now` returns milliseconds. */
  constructor(perSecond, now) {
    this.#perSecond = perSecond;
    this.#now = now;
    this.#tokens = perSecond;
    this.#at = now();
  }
  /** Takes a token if there is one; `now` saves reading the clock. */
  take(now) {
    if (this.#tokens < 1) this.#fill(now ?? this.#now());
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
  #fill(now) {
    const gained = Math.max(0, now - this.#at) * this.#perSecond / 1e3;
    this.#tokens = Math.min(this.#perSecond, this.#tokens + gained);
    this.#at = now;
  }
};

// sdk/typescript/worker.ts
var PUBLISH = "publish";
var Worker = class _Worker {
  /** Name in listings and logs. */
  name;
  #announcement;
  #calls;
  #channels;
  #clock;
  #inbound;
  #connection;
  #listeners;
  #onError;
  #registrations;
  #scopes = new CallScopes();
  #telemetry;
  #url;
  #identity;
  #lastFailure;
  constructor(url, options) {
    const { clock = platformClock, timeoutMs = CALL_TIMEOUT_MS, whenDisconnected } = options;
    checkOptions(options);
    this.#url = url;
    this.#clock = clock;
    this.#onError = options.onError ?? printError;
    this.#announcement = describeWorker(options);
    this.name = this.#announcement.name;
    const scopes = this.#scopes;
    const report = (error) => this.#report(error);
    this.#listeners = new ConnectionListeners(report);
    this.#telemetry = createTelemetry(url, options, this.#announcement);
    const connection = () => this.#connection.current;
    const failsNow = () => whenDisconnected === "fail" && this.#connection.state !== "connecting";
    this.#calls = new OutboundCalls({
      clock,
      scopes,
      timeoutMs,
      connection,
      failsNow,
      report
    });
    const find = (namespace, id) => this.#registrations.handler(namespace, id);
    const observe = (call, now) => this.#telemetry?.startSpan(call, now);
    const failed2 = failurePrinter(options);
    const handlers = new Handlers({
      clock,
      scopes,
      find,
      report,
      observe,
      failed: failed2
    });
    if (this.#telemetry) this.#telemetry.load = () => handlers.load();
    const triggers = new ProvidedTriggers({
      find: (namespace, id) => this.#registrations.triggerHandlers(namespace, id),
      report
    });
    this.#registrations = new Registrations((text) => connection()?.send(text), (removed) => triggers.unregisterAll(removed));
    this.#channels = new Channels(url, openSocket);
    this.#inbound = {
      calls: this.#calls,
      handlers,
      triggers,
      // A worker in the engine's process passes references on as they are.
      channels: options.dial ? void 0 : this.#channels,
      registered: (message) => this.#registered(message),
      rejected: (error) => this.#giveUp(error),
      report
    };
    this.#connection = new ReconnectingConnection({
      url,
      dial: options.dial ?? dialPlatform,
      dialOptions: {
        headers: headersOf(options),
        batch: true
      },
      clock,
      reconnect: options.reconnect ?? {},
      random: Math.random
    }, {
      opened: (opened) => this.#opened(opened),
      text: (message, from) => receive(message, from, this.#inbound),
      lost: (reason) => this.#lost(reason),
      failed: (reason, retryMs) => this.#failed(reason, retryMs),
      state: (state) => {
        if (failsNow() && state === "reconnecting") this.#calls.failQueued();
        this.#listeners.notify(state);
      }
    });
  }
  /** `registerWorker()` for an address that has been checked; use that instead. */
  static connect(url, options) {
    const worker = new _Worker(url, options);
    if (!options.dial) {
      setDefaultWorker(worker);
      worker.#scopes.attach();
      markOutput();
    }
    if (worker.#telemetry) setLogSink(worker, worker.#telemetry);
    worker.#connection.start();
    return worker;
  }
  /** State of the connection to the engine; `onConnectionState` reports its changes. */
  get connectionState() {
    return this.#connection.state;
  }
  registerFunction(id, implementation, options = {}) {
    const { message, handler } = planFunction(id, implementation, options);
    return withQueue(this, this.#registrations.addFunction(message, handler), options);
  }
  /**
   * Registers a trigger: its function is called on events of its type.
   *
   * A trigger that the engine or the provider of the type rejects is reported to `onError`. A
   * trigger of an unknown type becomes live when a worker provides the type.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a config that JSON cannot
   * represent.
   *
   * @example An HTTP route
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * worker.registerFunction("orders::create", ({ body }: { body: unknown }) => {
   *   return { status_code: 201, body };
   * });
   * worker.registerTrigger({
   *   type: "http",
   *   function_id: "orders::create",
   *   config: { api_path: "/orders", http_method: "POST" },
   * });
   * await worker.shutdown();
   * ```
   */
  registerTrigger(trigger) {
    return this.#registrations.addTrigger(planTrigger(trigger));
  }
  /**
   * Provides a trigger type: the engine passes every trigger of the type to `handlers`, and this
   * worker calls `trigger.function_id` on its events.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for formats that JSON cannot
   * represent.
   */
  registerTriggerType(type, handlers) {
    const message = planTriggerType(type, handlers);
    return this.#registrations.addType(message, handlers);
  }
  /**
   * Calls a function of any worker and resolves with its result, `undefined` if it has none.
   *
   * While there is no connection, the call is queued until its timeout or fails at once, as
   * `whenDisconnected` says; the queue holds 10,000 calls and 64 MiB.
   *
   * @throws {InvocationError} With the code that the handler threw, or one of these:
   * `function_not_found`; `invalid_payload`, if the payload does not match `request_format`;
   * `invocation_failed`, for a thrown error without a code; `TIMEOUT` and `timeout` (see
   * `isTimeout`); `cancelled`, by `signal`; `invocation_stopped`, if the worker or the connection
   * was lost and the function may have run; `overloaded`, if a limit is reached and nothing has
   * run; `engine_unreachable`, without a connection if `whenDisconnected` is `fail`, and after the
   * last attempt to connect; `SHUTDOWN`, after `shutdown()`.
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a payload that JSON cannot
   * represent, that is nested more deeply than 128 levels, or that takes over 64 MiB.
   *
   * @example
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * const payload = { a: 2, b: 3 };
   * const sum = await worker.trigger({ function_id: "math::add", payload, timeout_ms: 500 })
   *   .catch((error) => error.code); // `TIMEOUT` if no engine runs.
   * console.log(sum);
   * await worker.shutdown();
   * ```
   */
  trigger(request) {
    return this.#calls.call(request);
  }
  /**
   * Puts a call into a queue, which makes it later, at least once.
   * Resolves when the job is on disk.
   *
   * @throws {InvocationError} `enqueue_error`, if there is no such queue or it cannot keep the job;
   * `deserialization_error` for a bad option; otherwise as {@linkcode Worker.trigger}.
   *
   * @example A mail in a minute
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker(undefined, { timeoutMs: 500 });
   * const payload = { to: "a@b.c" };
   * await worker.enqueue({ function_id: "mail::send", payload, queue: "mail", delay_ms: 60_000 })
   *   .catch((error) => error.code); // `TIMEOUT` if no engine runs.
   * await worker.shutdown();
   * ```
   */
  enqueue(request) {
    const { function_id, payload, namespace, queue = "default", ...options } = request;
    const action = TriggerAction.Enqueue({
      queue,
      ...options
    });
    return this.trigger({
      function_id,
      payload,
      namespace,
      action
    });
  }
  /**
   * Publishes a message to all functions that are subscribed to a topic at that moment, at most
   * once; `engine-pubsub` provides it. Resolves when the engine has accepted the message, before it
   * is delivered.
   *
   * @param topic Such as `orders.created`; without `*` and `>`.
   * @param data Any JSON. Default: `null`.
   * @throws {InvocationError} As {@linkcode Worker.trigger}: `function_not_found` without
   * `engine-pubsub`; `overloaded`; `topic_not_set`; `VALUE_TOO_LARGE`; `deserialization_error` for
   * a topic that is too long or has a wildcard.
   *
   * @example
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker(undefined, { timeoutMs: 500 });
   * const code = await worker.publish("orders.created", { id: 7 }).catch((error) => error.code);
   * console.log(code); // `TIMEOUT` if no engine runs.
   * await worker.shutdown();
   * ```
   */
  async publish(topic, data) {
    await this.trigger({
      function_id: PUBLISH,
      payload: {
        topic,
        data
      }
    });
  }
  /**
   * Calls `handler` with each message of a topic, or of all topics that a pattern matches, until it
   * is unregistered. Every worker that subscribes gets every message; for replicas that share them,
   * register a function and a trigger of type `subscribe` instead.
   *
   * A pattern that the engine rejects is reported to `onError`.
   *
   * @param topic A topic, or a pattern: `*` stands for one part, `>` at the end for one or more.
   * @param handler Its first argument is the published data; its result is ignored.
   * @throws {EngineError} `INVALID_ARGUMENTS`.
   *
   * @example
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * const subscription = worker.subscribe("orders.*", ({ id }: { id: number }) => console.log(id));
   * subscription.unregister();
   * await worker.shutdown();
   * ```
   */
  subscribe(topic, handler) {
    return subscribeTo(this, topic, handler);
  }
  /**
   * A stream of `engine-stream`, whose items and events this worker reads and writes; see
   * {@linkcode Stream}.
   *
   * @param name Such as `chat`.
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  stream(name) {
    return streamOf(this, name);
  }
  /**
   * Keeps the items of a stream in this worker, in place of the engine: registers the functions
   * `stream::get(<name>)`, `set`, `delete`, `list`, `list_groups`, and `update` if there is one.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  createStream(name, source) {
    return createStream(this, name, source);
  }
  /**
   * A value of `engine-configuration` that stays current: it is read again after every change and
   * every reconnect; see {@linkcode LiveConfiguration}.
   *
   * @param id Such as `mail`.
   * @throws {InvocationError} As {@linkcode Worker.trigger}: `NOT_REGISTERED`; `NOT_FOUND`, if it
   * has no value; `SCHEMA_INVALID`; `EXPAND_FAILED`; `function_not_found` without
   * `engine-configuration`.
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  configuration(id, options = {}) {
    return followConfiguration(this.#following, id, options);
  }
  get #following() {
    const report = (error) => this.#report(error);
    return {
      worker: this,
      clock: this.#clock,
      scopes: this.#scopes,
      report
    };
  }
  /**
   * Entries of the state, first as they are, then each that changed: {@linkcode StateChanges}.
   *
   * @param place A `scope`, such as `stock`, and a `key`; without it all keys of the scope.
   * @throws {EngineError} `INVALID_ARGUMENTS`; the first `next()`: `function_not_found` without
   * `engine-state`, and what else its first read fails with.
   */
  watchState(place, options = {}) {
    return watchState(this.#following, place, options);
  }
  /**
   * Creates a channel: a stream of bytes and text messages between any two workers, whose ends
   * travel inside payloads. The engine forwards what is written and holds the writer back while the
   * reader is slow. An end that never connects ends the channel after 5 minutes.
   *
   * @throws {InvocationError} As {@linkcode Worker.trigger}: `overloaded`, if this worker has 1,000
   * channels open.
   *
   * @example A file is passed to a function while it is read
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * async function upload(file: ReadableStream<Uint8Array>) {
   *   await using worker = registerWorker();
   *   const { writer, reader } = await worker.createChannel();
   *   const size = worker.trigger({ function_id: "files::size", payload: { file: reader } });
   *   await file.pipeTo(writer.writable);
   *   return await size;
   * }
   * ```
   */
  async createChannel(options = {}) {
    const { bufferFrames } = options;
    const payload = bufferFrames === void 0 ? {} : {
      buffer_size: bufferFrames
    };
    const refs = await this.trigger({
      function_id: CREATE_CHANNEL,
      payload
    });
    return this.#channels.channel(JSON.parse(JSON.stringify(refs)));
  }
  /**
   * Calls `listener` with each new state; the returned function removes it.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` if it is not a function.
   */
  onConnectionState(listener) {
    return this.#listeners.add(listener);
  }
  /**
   * Disconnects from the engine: its functions and triggers are removed, the signals of running
   * handlers are aborted, and pending calls fail with `SHUTDOWN`. Resolves when the connection is
   * closed; has no effect the second time.
   */
  shutdown() {
    this.#end(errorBody("SHUTDOWN", "engine client is shutting down"));
    const telemetry = this.#telemetry?.stop(this.#connection.current);
    return Promise.all([
      this.#connection.stop("disconnected"),
      telemetry
    ]).then(() => {
    });
  }
  /** Calls {@linkcode Worker.shutdown} at the end of an `await using` block. */
  [Symbol.asyncDispose]() {
    return this.shutdown();
  }
  #opened(connection) {
    this.#lastFailure = void 0;
    if (this.#identity) {
      const { worker_id, reattach_token } = this.#identity;
      connection.send(encodeMessage({
        type: "reattach",
        previous_worker_id: worker_id,
        reattach_token
      }));
    }
    connection.send(encodeMessage({
      type: "invokefunction",
      function_id: ANNOUNCE_FUNCTION_ID,
      action: {
        type: "void"
      },
      data: this.#announcement
    }));
    for (const frame of this.#registrations.frames()) connection.send(frame);
    this.#calls.sendQueued(connection);
    this.#telemetry?.open();
  }
  #registered(message) {
    this.#identity = message;
    if (this.#telemetry) this.#telemetry.workerId = message.worker_id;
    this.#calls.useCapabilities(message.capabilities);
    this.#inbound.handlers.engineForwardsProgress = message.capabilities.includes("progress");
  }
  #lost(reason) {
    this.#calls.connectionLost(reason);
    this.#inbound.handlers.abortAll("The connection to the engine is lost");
    this.#inbound.triggers.unregisterAll();
  }
  #failed(reason, retryMs) {
    const text = `Cannot reach the engine at ${withoutSecrets(this.#url)}: ${withTlsHint(reason)}`;
    if (retryMs === void 0) {
      this.#giveUp(new EngineError("engine_unreachable", text));
    } else if (text !== this.#lastFailure) {
      this.#lastFailure = text;
      this.#report(new EngineError("engine_unreachable", `${text}; retrying in the background${startHint(this.#url, reason)}`));
    }
  }
  #giveUp(error) {
    this.#report(error);
    this.#end(error.toJSON());
    void this.#telemetry?.stop(this.#connection.current);
    void this.#connection.stop("failed");
  }
  /** Ends all parts with `error`: there will be no connection again. */
  #end(error) {
    this.#scopes.detach();
    this.#channels.close();
    this.#calls.end(error);
    this.#inbound.handlers.abortAll(error.message);
    this.#inbound.triggers.unregisterAll();
  }
  #report(error) {
    try {
      this.#onError(error);
    } catch (cause) {
      console.error("[engine] onError failed:", cause);
    }
  }
};

// sdk/typescript/register_worker.ts
function registerWorker(url, options = {}) {
  const address = readUrl(url ?? environment("ENGINE_URL") ?? ENGINE_URL_DEFAULT);
  const test = options.dial ? void 0 : testConnection();
  return Worker.connect(address, test ? {
    ...options,
    ...test
  } : options);
}
export {
  EngineError,
  InvocationError,
  Logger,
  TriggerAction,
  Worker,
  isTimeout,
  registerWorker
};
